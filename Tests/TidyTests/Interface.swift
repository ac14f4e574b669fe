import Foundation
import TestSupport
import WormholeSyscalls

/// What users see of a module, by the compiler's symbol graph.
struct Interface {
  struct Symbol: Hashable {
    /// The symbol's path, starting with the module.
    let path: String
    let declaration: String
    let isDocumented: Bool
  }

  let symbols: [Symbol]

  /// - Parameter reexported: whose public symbols are the module's own as well.
  init(of module: String, reexporting reexported: [String] = []) throws {
    let folder = try TemporaryDirectory()
    let modules = Programs.built("Modules")
    let maps = ["WormholeCLinux", "WormholeCChecksum"].flatMap {
      ["-Xcc", "-fmodule-map-file=" + Programs.built($0 + ".build/module.modulemap")]
    }
    let outcome = try run(
      "swift",
      [
        "symbolgraph-extract", "-module-name", module, "-I", modules, "-target", Self.target,
        "-minimum-access-level", "public", "-skip-synthesized-members", "-output-dir", folder.path,
        "-experimental-allowed-reexported-modules=" + reexported.joined(separator: ","),
      ] + maps, within: .seconds(120))
    guard outcome.status == .exited(0) else { throw Unreadable(description: outcome.errors) }
    var found: Set<Symbol> = []
    for name in try folder.descriptor.names() where name.hasSuffix(".symbols.json") {
      let graph = try JSONDecoder().decode(Graph.self, from: Data(try folder.bytes(of: name)))
      found.formUnion(graph.symbols.compactMap(Symbol.init))
    }
    symbols = found.sorted { ($0.path, $0.declaration) < ($1.path, $1.declaration) }
  }

  private static var target: String {
    #if arch(arm64)
      "aarch64-unknown-linux-gnu"
    #else
      "x86_64-unknown-linux-gnu"
    #endif
  }

  /// Two lines for each symbol, in order.
  var text: String {
    symbols.map { "\($0.path)\n    \($0.declaration)\n" }.joined()
  }
}

/// The part of a symbol graph that the tests read.
private struct Graph: Decodable {
  struct Symbol: Decodable {
    struct Kind: Decodable { let identifier: String }
    struct Fragment: Decodable { let spelling: String }
    struct Documentation: Decodable {}
    struct Location: Decodable {}
    let kind: Kind
    let pathComponents: [String]
    let declarationFragments: [Fragment]?
    let docComment: Documentation?
    let location: Location?
  }

  let symbols: [Symbol]
}

extension Interface.Symbol {
  /// Nil for a symbol without a file: the compiler has made it.
  fileprivate init?(_ symbol: Graph.Symbol) {
    guard symbol.kind.identifier != "swift.extension", symbol.location != nil else { return nil }
    path = symbol.pathComponents.joined(separator: ".")
    let text = symbol.declarationFragments?.map(\.spelling).joined() ?? ""
    declaration = text.split { $0 == "\n" || $0 == " " }.joined(separator: " ")
    isDocumented = symbol.docComment != nil
  }
}

/// The graph could not be made.
private struct Unreadable: Error, CustomStringConvertible { let description: String }
