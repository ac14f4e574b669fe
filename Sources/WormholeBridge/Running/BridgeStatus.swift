package import Wormhole
internal import WormholeContainerStorage
package import WormholePropertyLists
internal import WormholeSyscalls

/// The latest statement of a container's bridge about itself.
package struct BridgeStatus {
  private let list: PropertyListValue
  /// Whether a bridge serves the container now, as the kernel knows.
  package let isRunning: Bool

  private init(_ list: PropertyListValue, isRunning: Bool) {
    (self.list, self.isRunning) = (list, isRunning)
  }

  /// Nil if no bridge has ever served the container.
  package static func read(_ container: SharedContainer) throws(WormholeError) -> BridgeStatus? {
    let folder = try BridgeFolder(of: container.storage)
    guard let list = try folder.read(Bridge.statusName) else { return nil }
    return BridgeStatus(list, isRunning: try BridgeLock.isHeld(folder))
  }

  /// The container's machine and group.
  package static func place(
    _ container: SharedContainer
  ) throws(WormholeError) -> (machine: String, group: String) {
    let storage = container.storage
    guard try storage.hasBridge, let place = try Place.read(BridgeFolder(of: storage)) else {
      throw WormholeError(
        .notFound, "find the machine of", container.directory,
        because: "no bridge has ever served this container", hint: "start 'wormhole bridge' once")
    }
    return (place.machine, place.group)
  }

  /// The statement with the key `state`: `serving`, `connecting` or `over`.
  package var object: [String: PropertyListValue] {
    var object = list.dictionaryValue ?? [:]
    if !isRunning { object["state"] = "over" }
    return object
  }

  /// For people: the bridge, and a line for each machine and each conflict.
  package var lines: [String] {
    let object = object
    func text(_ key: String) -> String { object[key]?.stringValue ?? "" }
    var lines = [
      "machine \(text("machine")) of group '\(text("group"))': \(text("state")), "
        + "start \(object["generation"]?.intValue ?? 0)"
    ]
    if let trouble = object["trouble"]?.stringValue { lines.append("trouble: \(trouble)") }
    for (machine, flow) in (object["machines"]?.dictionaryValue ?? [:]).sorted(by: {
      $0.key < $1.key
    }) {
      lines.append(line(machine, flow))
    }
    for (member, reason) in (object["conflicts"]?.dictionaryValue ?? [:]).sorted(by: {
      $0.key < $1.key
    }) {
      lines.append("conflict: '\(member)': \(reason.stringValue ?? "")")
    }
    return lines
  }

  private func line(_ machine: String, _ flow: PropertyListValue) -> String {
    if let trouble = flow["trouble"]?.stringValue { return "to \(machine): \(trouble)" }
    func number(_ key: String) -> Int { flow[key]?.intValue ?? 0 }
    let beat = flow["running"]?.intValue.map { "\($0) members run" } ?? "no beat"
    return "to \(machine): \(number("confirmed")) of \(number("next") - 1) confirmed, "
      + "\(number("received")) received, \(beat)"
  }
}
