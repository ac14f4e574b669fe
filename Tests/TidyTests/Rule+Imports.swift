/// The modules that each room imports. Rooms import downward only.
extension Rule {
  static let imports = Rule("imports", in: \.code) { line, file in
    guard file.isSwift, let module = imported(by: line) else { return nil }
    if file.isTest {
      return ["Glibc", "WormholeLibC", "WormholeCLinux", "Dispatch"].contains(module)
        && !(file.path == pathOfCopies && module == "WormholeCLinux")
        ? "tests reach the system through WormholeSyscalls, not through \(module)" : nil
    }
    guard file.isSource, let allowed = rooms[file.room] else { return nil }
    return allowed.contains(module) ? nil : "\(file.room) does not import \(module)"
  }

  /// The file of tests that forks as on a kernel without memory that is wiped in forked children.
  ///
  /// The C code has a function for this case, which only that file calls.
  private static let pathOfCopies = "Tests/TestPeer/Peer+Copies.swift"

  /// A target that is not a test target is also built for release, statically, without Testing.
  static let testing = Rule("Testing in other targets") { file in
    guard file.isSwift, !(file.isTest && file.room.hasSuffix("Tests")),
      file.room != "ExamplePackage"
    else { return [] }
    let modules: Set<String> = ["Testing", "XCTest"]
    return file.code.enumerated().compactMap { index, line in
      guard let module = imported(by: line), modules.contains(module),
        !file.code[..<index].contains("#if canImport(\(module))")
      else { return nil }
      return (index + 1, "\(module) is imported inside '#if canImport(\(module))' only")
    }
  }

  /// The module that a line imports.
  static func imported(by line: String) -> String? {
    let words = line.split { $0 == " " || $0 == "\t" }.drop { $0.hasPrefix("@") }
      .drop { ["public", "package", "internal", "private", "fileprivate"].contains($0) }
    guard words.first == "import", words.count > 1 else { return nil }
    // `import struct Foundation.Data` names the wanted part of the module.
    let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "let", "var"]
    let name =
      kinds.contains(words.dropFirst().first ?? "") ? words.dropFirst(2) : words.dropFirst()
    return name.first?.split(separator: ".").first.map(String.init)
  }

  /// The modules that each room may import, from the lowest room upward.
  static let rooms: [String: Set<String>] = {
    let any: Set<String> = ["Synchronization", "FoundationEssentials"]
    let container: Set = ["WormholeSyscalls", "WormholePropertyLists"]
    let wormhole = container.union(["WormholeContainerStorage", "Dispatch", "Observation"])
    let above = wormhole.union(["Wormhole"])
    // Rooms with an original of Apple's or of another author. Foundation yes; files, locks and
    // watches of their own no: the rooms below provide these objects.
    let ground = above.union(["Foundation"])
    let dropIn = ground.union(["AppGroups", "WormholeDropIns"])
    let office = dropIn.union(["MMWormhole", "WatchConnectivity", "Communicator"])
    let rooms: [String: Set<String>] = [
      "WormholeCLinux": [],
      "WormholeAllocationCounter": [],
      "WormholeCFloor": [],
      "WormholeLibC": ["Glibc", "Musl"],
      "WormholeSyscalls": ["WormholeCLinux", "WormholeLibC"],
      "WormholeCChecksum": [],
      "WormholePropertyLists": ["WormholeCChecksum"],
      "WormholeRelay": container,
      "WormholeHubProtocol": container,
      "WormholeWeb": ["WormholeSyscalls"],
      "WormholeContainerStorage": container,
      "Wormhole": wormhole,
      "WormholeTesting": above,
      "WormholeTestingTraits": above.union(["Testing", "WormholeTesting"]),
      "WormholePairings": above,
      "WormholeDropIns": ground,
      "AppGroups": ground.union(["WormholeDropIns"]),
      "WatchConnectivity": dropIn.union(["WormholePairings"]),
      "MMWormhole": dropIn.union(["WatchConnectivity"]),
      "Communicator": dropIn.union(["WatchConnectivity"]),
      "WormholeCinemaTime": office,
      "WormholeCinemaTimeCommand": office.union([
        "WormholeCinemaTime", "WormholeCommandLine", "WormholeWeb",
      ]),
      "WormholeCommandLine": wormhole.union(["WormholeWeb"]),
      "WormholeBridge": above.union(["WormholeRelay"]),
      "WormholeCommand": above.union([
        "WormholeBridge", "WormholeCommandLine", "WormholePairings", "WormholeRelay",
        "WormholeWeb",
      ]),
      "WormholeTrial": above.union(["TestSupport", "WormholeCommandLine"]),
      "WormholeStress": above.union([
        "WormholeBridge", "WormholeCLinux", "WormholeCommandLine", "WormholeCTesting",
        "WormholeHubProtocol", "WormholeRelay",
      ]),
      "WormholeBenchmarks": above.union([
        "Foundation", "WormholeAllocationCounter", "WormholeCFloor", "WormholeDropIns",
        "AppGroups", "MMWormhole", "WormholePairings", "WatchConnectivity",
      ]),
    ]
    return rooms.mapValues { $0.union(any) }
  }()
}
