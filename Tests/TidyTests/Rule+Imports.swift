/// Who imports what. Rooms import downward only.
extension Rule {
  static let imports = Rule("imports", in: \.code) { line, file in
    guard file.isSwift, let module = imported(by: line) else { return nil }
    if file.isTest {
      return ["Glibc", "CLinux", "Dispatch"].contains(module)
        ? "tests reach the system through Syscalls, not through \(module)" : nil
    }
    guard file.isSource, let allowed = rooms[file.room] else { return nil }
    return allowed.contains(module) ? nil : "\(file.room) does not import \(module)"
  }

  /// The module that a line imports.
  static func imported(by line: String) -> String? {
    let words = line.split { $0 == " " || $0 == "\t" }.drop { $0.hasPrefix("@") }
      .drop { ["public", "package", "internal", "private", "fileprivate"].contains($0) }
    guard words.first == "import", words.count > 1 else { return nil }
    // `import struct Foundation.Data` names what it wants of the module.
    let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "let", "var"]
    let name =
      kinds.contains(words.dropFirst().first ?? "") ? words.dropFirst(2) : words.dropFirst()
    return name.first?.split(separator: ".").first.map(String.init)
  }

  /// What each room may import, from the lowest room upward.
  static let rooms: [String: Set<String>] = {
    let any: Set<String> = ["Synchronization", "FoundationEssentials"]
    let container: Set = ["Syscalls", "PropertyLists"]
    let wormhole = container.union(["SharedContainer", "Dispatch", "Observation"])
    let above = wormhole.union(["Wormhole"])
    let dropIn = above.union(["Foundation", "AppGroups"])
    let office = dropIn.union(["MMWormhole", "WatchConnectivity", "Communicator"])
    let rooms: [String: Set<String>] = [
      "CLinux": [],
      "AllocationCounter": [],
      "CFloor": [],
      "Syscalls": ["CLinux", "Glibc"],
      "CChecksum": [],
      "PropertyLists": ["CChecksum"],
      "SharedContainer": container,
      "Wormhole": wormhole,
      "WormholeTesting": above,
      "AppGroups": above.union(["Foundation"]),
      "WatchConnectivity": dropIn,
      "MMWormhole": dropIn.union(["WatchConnectivity"]),
      "Communicator": dropIn.union(["WatchConnectivity"]),
      "CinemaTime": office,
      "CinemaTimeCommand": office.union(["CinemaTime"]),
      "WormholeCommand": above,
      "WormholeStress": above,
      "WormholeBenchmarks": above.union(["Foundation", "AllocationCounter", "CFloor"]),
    ]
    return rooms.mapValues { $0.union(any) }
  }()
}
