import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The interface that users write against is stored in `Fixtures/interface`, so that a change is
/// seen.
///
/// To renew the files after an intended change:
///
///     WORMHOLE_RENEW_INTERFACE=1 swift test --filter InterfaceTests
@Suite(.blocking, .notSanitized("it reads text and runs other tools")) struct InterfaceTests {
  /// The modules of the package's products, and the modules whose symbols users of each also see.
  private static let modules = [
    "Wormhole": ["WormholeContainerStorage", "WormholePropertyLists"], "WormholeTesting": [],
    "WormholeTestingTraits": [],
    "AppGroups": ["WormholeDropIns"], "WormholeCinemaTime": [], "Communicator": [],
    "MMWormhole": [],
    "WormholePairings": [], "WatchConnectivity": [],
  ]

  @Test(arguments: modules.keys.sorted())
  func aModulesInterfaceIsWhatItWas(_ module: String) throws {
    guard Programs.installed("swift") != nil else {
      return skip("the interface of \(module)", missing: "swift")
    }
    let interface = try Interface(of: module, reexporting: Self.modules[module] ?? [])
    #expect(interface.symbols.count > 3, "it was found")
    for symbol in interface.symbols where !symbol.isDocumented {
      Issue.record("\(module): \(symbol.path) is public and not documented")
    }
    let path = "Fixtures/interface/\(module).txt"
    if Processes.environment("WORMHOLE_RENEW_INTERFACE") != nil {
      try renew(path, interface.text)
    }
    let known = String(
      decoding: try Descriptor.open(path: Programs.source + "/" + path, [.readOnly]).contents(),
      as: UTF8.self)
    let hint = "if that is meant: WORMHOLE_RENEW_INTERFACE=1 swift test --filter InterfaceTests"
    let (old, new) = (lines(of: known), lines(of: interface.text))
    for line in old where !new.contains(line) {
      Issue.record("\(path): is no more: \(line.trimmed); \(hint)")
    }
    for line in new where !old.contains(line) {
      Issue.record("\(path): is new: \(line.trimmed); \(hint)")
    }
    #expect(known == interface.text)
  }

  private func lines(of text: String) -> Set<Substring> {
    Set(text.split(separator: "\n"))
  }

  private func renew(_ path: String, _ text: String) throws {
    let folder = Programs.source + "/Fixtures/interface"
    try? Descriptor.makeDirectory(path: folder, mode: 0o755)
    let file = try Descriptor.open(
      path: Programs.source + "/" + path, [.writeOnly, .create, .truncate], mode: 0o644)
    try file.writeFully(Array(text.utf8))
  }
}

extension Substring {
  fileprivate var trimmed: Substring { drop { $0 == " " } }
}
