import WormholeCommandLine
import WormholeContainerStorage
import WormholeSyscalls

extension Verb {
  static let new = Verb(
    "new", "write the sources of a package or of a shim",
    [
      Operand("KIND", .one, .words(NewKind.allCases.map(\.rawValue))),
      Operand("SHIM", .optional, .found(shims)), Operand("DIR", .one, .files),
    ],
    [.sources, .package],
    [
      "KIND two-sides writes a package that compiles the code of a phone and watch app for both "
        + "sides, and tests both sides as two processes. The article 'Two sides in CI' explains "
        + "each file. Without --sources the package contains a small sample.",
      "With --sources, symbolic links lead to the code, which stays in its place. If the code "
        + "imports Combine, WatchKit or os, the shims of these modules are written, too.",
      "KIND shim writes one of these modules, reduced to the part that connectivity code uses, as "
        + "the sources of a target of the user's package. SHIM is combine, watchkit or os.",
      "DIR is created, or must be an empty directory. No file is ever replaced.",
    ],
    [
      Example(
        "wormhole new two-sides ci --package ../wormhole", "write a package with a sample of an app"
      ),
      Example(
        "wormhole new two-sides ci --sources Shared --package ../wormhole",
        "write a package around the code in 'Shared'"),
      Example("wormhole new shim combine Sources/Combine", "write the shim of Combine"),
    ],
    action: "write the sources"
  ) { invocation in
    let words = invocation.operands
    let kind: NewKind = try invocation.word(separator: " or ") { "write '\($0)': KIND must be" }
    switch kind {
    case .twoSides:
      guard words.count == 2 else {
        throw Failure.usage("cannot write two-sides: unexpected argument '\(words[2])'")
      }
      try invocation.writeTwoSides(words[1])
    case .shim:
      guard !invocation.has(.sources), !invocation.has(.package) else {
        throw Failure.usage("cannot write shim: --sources and --package belong to two-sides")
      }
      try invocation.writeShim(words[1], words.count > 2 ? words[2] : nil)
    }
    return 0
  }

  private static let shims: Found = { invocation in
    guard invocation.operands.first == NewKind.shim.rawValue else { return [] }
    return Shim.allCases.map {
      Proposal.Word($0.rawValue, "the shim of \($0.targetName)")
    }
  }
}

extension Option {
  fileprivate static let sources = Option(
    "sources", .directory("SOURCES"), "directory of the code that both sides of an app share")
  fileprivate static let package = Option(
    "package", .any("PATH-OR-URL"), "location of the package wormhole, for the manifest")
}

enum NewKind: String, CaseIterable {
  case twoSides = "two-sides"
  case shim
}

extension Invocation {
  fileprivate func writeTwoSides(_ path: String) throws {
    let reference = try PackageReference(value(.package))
    let package = TwoSides(around: try value(.sources).map { try SourceScan($0) })
    let directory = try NewDirectory(path)
    let place = try directory.straightPath
    if let sources = package.sources, (place + "/").begins(with: sources.path + "/") {
      directory.abandon()
      throw WormholeError(
        .refused, "write package", path,
        because: "the directory is in '\(sources.path)', and a link would lead to itself",
        hint: "name a directory outside the sources")
    }
    for link in TwoSides.links { try directory.link(link, to: package.linkTarget(in: place)) }
    let files = package.files(
      dependency: reference.dependency(of: place), identity: reference.identity)
    for file in files { try directory.write(file.text, to: file.path) }
    if let sources = package.sources, sources.delegate == nil {
      output.tell(
        "no shared object of a class with WCSessionDelegate was found: start the app's code in "
          + "PhoneApp.swift and WatchApp.swift")
    }
    output.tell("wrote \(files.count) files; try 'swift test' there")
  }

  fileprivate func writeShim(_ name: String, _ path: String?) throws {
    guard let shim = Shim(rawValue: name), let path else {
      let names = Shim.allCases.map(\.rawValue).joined(separator: ", ")
      throw Failure.usage(
        path == nil
          ? "cannot write shim '\(name)': DIR is missing"
          : "cannot write shim '\(name)': the shims are \(names)")
    }
    let directory = try NewDirectory(path)
    for file in shim.files { try directory.write(file.text, to: file.path) }
    output.tell("wrote \(shim.files.count) files of a target '\(shim.targetName)'")
  }
}
