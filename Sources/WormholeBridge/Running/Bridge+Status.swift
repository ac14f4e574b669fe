internal import FoundationEssentials
internal import Wormhole
internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// What the bridge says of itself, in `bridge/status.plist`, and the place where it continues.
extension Bridge {
  package static let statusName = "status.plist"
  private static let positionName = "position.plist"

  private enum Key {
    static let (stream, sequence) = ("stream", "sequence")
  }

  static func readPosition(_ folder: BridgeFolder) -> (stream: String, sequence: UInt64)? {
    // Without the position, the last bundles of each flow arrive again, and are known.
    guard let list = try? folder.read(positionName),
      let stream = list[Key.stream]?.stringValue,
      let sequence = list[Key.sequence]?.intValue.flatMap({ UInt64(exactly: $0) })
    else { return nil }
    return (stream, sequence)
  }

  func writePosition() {
    guard let position, let sequence = Int64(exactly: position.sequence) else { return }
    try? folder.write(
      Self.positionName,
      [Key.stream: .string(position.stream), Key.sequence: .integer(sequence)], sync: false)
  }

  func writeStatus(isOver: Bool = false) {
    var list: [String: PropertyListValue] = [
      "machine": .string(place.machine), "group": .string(place.group),
      "generation": .integer(Int64(place.generation)), "since": .date(began), "at": .date(Date()),
      "process": .integer(Int64(Processes.current)),
      "state": .string(isOver ? "over" : link?.isServing == true ? "serving" : "connecting"),
      "servers": .string("\(settings.address)"),
      "members": .dictionary(homes.mapValues { .string($0.machine) }),
      "conflicts": .dictionary(conflicts.mapValues { .string($0) }),
      "machines": .dictionary(machines),
    ]
    if let trouble { list["trouble"] = .string(trouble) }
    if let end { list["trouble"] = .string(end.description) }
    if let clockOffset { list["clock"] = .real(Double(clockOffset) / 1e9) }
    if let version = link?.connection.server.version {
      list["version"] = .string(version.description)
    }
    try? folder.write(Self.statusName, .dictionary(list), sync: false)
    if !isOver { writePosition() }
  }

  private var machines: [String: PropertyListValue] {
    var machines: [String: PropertyListValue] = [:]
    for (machine, pair) in pairs {
      var list: [String: PropertyListValue] = [
        "next": .integer(Int64(pair.out.next)), "published": .integer(Int64(pair.out.published)),
        "confirmed": .integer(Int64(pair.out.confirmed)),
        "received": .integer(Int64(pair.incoming.position?.number ?? 0)),
      ]
      if let beat = beats[machine] {
        list["beat"] = .real((Instant.now - beat.arrived) / .seconds(1))
      }
      machines[machine] = .dictionary(list)
    }
    for (machine, failure) in failed where pairs[machine] == nil {
      machines[machine] = ["trouble": .string(failure.reason)]
    }
    return machines
  }
}
