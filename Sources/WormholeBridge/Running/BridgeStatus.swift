internal import FoundationEssentials
package import Wormhole
internal import WormholeContainerStorage
package import WormholePropertyLists
internal import WormholeSyscalls

/// How often entries were missing in the flows with a machine.
struct FlowTally {
  /// Bundles from the machine that did not follow the entries before them.
  var gaps = 0
  /// How often entries were sent again, because the machine lacked them.
  var repetitions = 0
}

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
    guard let list = try Self.list(in: folder) else { return nil }
    return BridgeStatus(list, isRunning: try BridgeLock.isHeld(folder))
  }

  /// Reads the file; nil if there is none.
  ///
  /// The bridge does not sync the file, so a power cut may damage the file, and nothing else.
  static func list(in folder: BridgeFolder) throws(WormholeError) -> PropertyListValue? {
    do throws(WormholeError) {
      return try folder.read(Bridge.statusName)
    } catch {
      guard error.code == .damaged else { throw error }
      throw WormholeError(
        .damaged, "read", "\(Container.bridgeName)/\(Bridge.statusName)",
        because: "the file is damaged, as after a power cut",
        hint: "start 'wormhole bridge': the bridge writes the file again")
    }
  }

  /// The container's machine and group.
  package static func identity(
    of container: SharedContainer
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

  /// For tables: the bridge, each machine, each channel, each queue and each conflict.
  package var rows: [[String: PropertyListValue]] {
    let object = object
    func row(
      _ kind: String, _ name: String, _ standing: String, waiting: Int = 0, age: Int = 0,
      gaps: Int = 0, file: String = "bridge/\(Bridge.statusName)"
    ) -> [String: PropertyListValue] {
      [
        "name": .string(name), "kind": .string(kind), "standing": .string(standing),
        "waiting": .integer(Int64(waiting)), "age": .integer(Int64(age)),
        "gaps": .integer(Int64(gaps)), "file": .string(file),
      ]
    }
    var standing = object["state"]?.stringValue ?? ""
    if let trouble = object["trouble"]?.stringValue { standing += ": \(trouble)" }
    if let clock = object["clock"]?.doubleValue, abs(clock) >= 1 {
      standing += ", the servers' clock is \(Int(clamping: clock)) s ahead"
    }
    var rows = [row("this machine", object["machine"]?.stringValue ?? "", standing)]
    for (machine, flow) in sorted("machines") {
      let next = flow["next"]?.intValue ?? 1
      let confirmed = flow["confirmed"]?.intValue ?? 0
      rows.append(
        row(
          "machine", machine, state(of: flow),
          waiting: max(0, next.subtractingClamped(1).subtractingClamped(confirmed)),
          age: age(of: flow), gaps: flow["gaps"]?.intValue ?? 0, file: "bridge/out/\(machine)/"))
    }
    for (kind, name, standing) in subjects { rows.append(row(kind, name, standing)) }
    return rows
  }

  private func sorted(_ key: String) -> [(key: String, value: PropertyListValue)] {
    (object[key]?.dictionaryValue ?? [:]).sorted { $0.key < $1.key }
  }

  /// The channels, the queues and the conflicts: kind, name and standing.
  private var subjects: [(String, String, String)] {
    var subjects: [(String, String, String)] = []
    for (name, state) in sorted("channels") {
      let version = state["version"]?.intValue.map { ", version \($0)" } ?? ""
      subjects.append(("channel", name, standing(state, version)))
    }
    for (name, state) in sorted("queues") {
      let lent = state["lent"]?.intValue ?? 0
      subjects.append(("queue", name, standing(state, ", \(lent) lent")))
    }
    for (name, reason) in sorted("conflicts") {
      subjects.append(("conflict", name, reason.stringValue ?? ""))
    }
    return subjects
  }

  private func state(of flow: PropertyListValue) -> String {
    flow["trouble"]?.stringValue ?? flow["running"]?.intValue.map { "\($0) members run" }
      ?? "no beat"
  }

  /// The seconds for which the oldest entry waits; 0 if none does.
  private func age(of flow: PropertyListValue) -> Int {
    flow["oldest"]?.dateValue.map { max(0, Int(clamping: Date().timeIntervalSince($0))) } ?? 0
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
    for (machine, flow) in sorted("machines") { lines.append(line(machine, flow)) }
    for (kind, name, standing) in subjects {
      lines.append("\(kind == "conflict" ? "conflict:" : kind) '\(name)': \(standing)")
    }
    return lines
  }

  private func line(_ machine: String, _ flow: PropertyListValue) -> String {
    if let trouble = flow["trouble"]?.stringValue { return "to \(machine): \(trouble)" }
    func number(_ key: String) -> Int { flow[key]?.intValue ?? 0 }
    var line =
      "to \(machine): \(number("confirmed")) of \(number("next").subtractingClamped(1)) confirmed, "
      + "\(number("received")) received, \(state(of: flow))"
    if flow["oldest"] != nil { line += ", the oldest waits \(age(of: flow)) s" }
    return line
  }

  private func standing(_ state: PropertyListValue, _ detail: String) -> String {
    let home = state["home"]?.stringValue
    let place = home == object["machine"]?.stringValue ? "this machine" : home ?? "not known yet"
    let trouble = state["trouble"]?.stringValue.map { ": \($0)" } ?? ""
    return "home \(place)\(detail)\(trouble)"
  }
}
