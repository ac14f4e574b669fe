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

  /// How old the status becomes while nothing changes, so that its age shows a live bridge.
  package static let statusInterval = Duration.seconds(10)

  /// Writes the position in the stream of flows, if it has changed.
  func writePosition() {
    guard let position, let sequence = Int64(exactly: position.sequence),
      writtenPosition?.stream != position.stream || writtenPosition?.sequence != position.sequence
    else { return }
    do throws(WormholeError) {
      try folder.write(
        Self.positionName,
        [Key.stream: .string(position.stream), Key.sequence: .integer(sequence)], sync: false)
      writtenPosition = position
    } catch {
      // It is written again in a second; without it, known bundles arrive again.
    }
  }

  /// Writes the status, if it has changed or has become old.
  func writeStatus(isOver: Bool = false) {
    let list = status(isOver: isOver)
    if !isOver { writePosition() }
    let now = Instant.now
    if let written, written.status == list, now - written.at < Self.statusInterval { return }
    var dated = list
    dated["at"] = .date(Date())
    do throws(WormholeError) {
      try folder.write(Self.statusName, .dictionary(dated), sync: false)
      written = (list, now)
    } catch {
      // The file is written again in a second, and no program decides by its content.
    }
  }

  private func status(isOver: Bool) -> [String: PropertyListValue] {
    var list: [String: PropertyListValue] = [
      "machine": .string(place.machine), "group": .string(place.group),
      "generation": .integer(Int64(place.generation)), "since": .date(began),
      "process": .integer(Int64(Processes.current)),
      "state": .string(isOver ? "over" : link?.isServing == true ? "serving" : "connecting"),
      "servers": .string("\(settings.address)"),
      "members": .dictionary(homes.compactMapValues { $0.machine.map { .string($0) } }),
      "conflicts": .dictionary(conflicts.mapValues { .string($0) }),
      "machines": .dictionary(machines), "channels": .dictionary(channelStatus),
      "queues": .dictionary(queueStatus),
      "requests": [
        "sent": .integer(Int64(traffic.sent)), "received": .integer(Int64(traffic.received)),
      ],
    ]
    list["wakes"] = [
      "asked": .integer(Int64(wakes.asked)), "received": .integer(Int64(wakes.received)),
    ]
    if let trouble { list["trouble"] = .string(trouble) }
    if let end { list["trouble"] = .string(end.description) }
    // Two readings of the clocks differ a little without a change of the status.
    if let clockOffset { list["clock"] = .real(Double(clockOffset / 100_000_000) / 10) }
    if let version = link?.connection.server.version {
      list["version"] = .string(version.description)
    }
    return list
  }

  private var machines: [String: PropertyListValue] {
    var machines: [String: PropertyListValue] = [:]
    for (machine, pair) in pairs {
      var list: [String: PropertyListValue] = [
        "next": .integer(Int64(pair.out.next)), "published": .integer(Int64(pair.out.published)),
        "confirmed": .integer(Int64(pair.out.confirmed)),
        "received": .integer(Int64(pair.incoming.position?.number ?? 0)),
        "contexts": .integer(Int64(pair.out.boundContexts.count)),
      ]
      list["oldest"] = pair.out.oldest.map { .date($0) }
      if let tally = tallies[machine] {
        list["gaps"] = .integer(Int64(tally.gaps))
        list["repetitions"] = .integer(Int64(tally.repetitions))
      }
      if let beat = beats[machine] {
        list["interval"] = .real(beat.interval / .seconds(1))
        list["running"] = .integer(Int64(beat.running.count))
      }
      machines[machine] = .dictionary(list)
    }
    for (machine, failure) in failed where pairs[machine] == nil {
      machines[machine] = ["trouble": .string(failure.reason)]
    }
    return machines
  }
}
