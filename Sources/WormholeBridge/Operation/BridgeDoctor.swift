internal import FoundationEssentials
package import Wormhole
package import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// Checks everything that the bridge of a container needs, and changes nothing: its files, its
/// flows, the servers, and the rights of the machine.
package struct BridgeDoctor {
  let container: SharedContainer
  let settings: Bridge.Settings
  private(set) var findings: [Diagnosis] = []
  /// What the bridge has stated of itself, if a bridge has ever served the container.
  private(set) var status: [String: PropertyListValue] = [:]
  private(set) var isServed = false

  /// How old a message in transit is when something probably holds it up.
  private static let longestTransit: Int64 = 60

  private init(_ container: SharedContainer, _ settings: Bridge.Settings) {
    (self.container, self.settings) = (container, settings)
  }

  /// - Parameter settings: their time limits each part of the dialog with the servers.
  package static func run(
    _ container: SharedContainer, _ settings: Bridge.Settings
  ) -> [Diagnosis] {
    var doctor = BridgeDoctor(container, settings)
    let place = doctor.inspectPlace()
    if place != nil { doctor.inspectFlows() }
    doctor.inspectServers(place)
    return doctor.findings
  }

  mutating func add(
    _ severity: Diagnosis.Severity, _ subject: String, _ what: String, advice: String? = nil
  ) {
    findings.append(Diagnosis(severity, subject, what, advice: advice))
  }

  /// Runs a part; a failure of it is a finding, and the next part is run all the same.
  mutating func look(
    at subject: String, _ body: (inout BridgeDoctor) throws(WormholeError) -> Void
  ) {
    do throws(WormholeError) {
      try body(&self)
    } catch {
      add(.problem, subject, "cannot be inspected: \(error.reason)", advice: error.hint)
    }
  }

  // MARK: The place

  private mutating func inspectPlace() -> Place? {
    var place: Place?
    look(at: "bridge") { doctor throws(WormholeError) in
      guard try doctor.container.storage.hasBridge else {
        return doctor.add(
          .note, "bridge", "no bridge has ever served the container",
          advice: "start 'wormhole bridge'")
      }
      let folder = try BridgeFolder(of: doctor.container.storage)
      place = try Place.read(folder)
      doctor.isServed = try BridgeLock.isHeld(folder)
      doctor.look(at: "bridge/status.plist") { doctor throws(WormholeError) in
        doctor.status = try BridgeStatus.list(in: folder)?.dictionaryValue ?? [:]
      }
    }
    guard let place else { return nil }
    add(
      .fine, "bridge",
      "machine \(place.machine) of group '\(place.group)', start \(place.generation)")
    inspectStatus()
    return place
  }

  private mutating func inspectStatus() {
    let process = status["process"]?.intValue.map { " (process \($0))" } ?? ""
    if isServed {
      add(.fine, "bridge/lock", "a bridge serves the container\(process)")
    } else {
      add(
        .problem, "bridge/lock", "no bridge serves the container",
        advice: "start 'wormhole bridge'")
    }
    if isServed, let at = status["at"]?.dateValue {
      let age = Date().timeIntervalSince(at)
      if age > 3 * (Bridge.statusInterval / .seconds(1)) {
        add(
          .problem, "bridge/status.plist",
          "the bridge has stated nothing for \(Int(clamping: age)) s",
          advice: "find out whether the process\(process) is suspended")
      }
    }
    if let trouble = status["trouble"]?.stringValue {
      add(isServed ? .problem : .note, "bridge/status.plist", "trouble: \(trouble)")
    }
    for (member, reason) in status["conflicts"]?.dictionaryValue ?? [:] {
      add(
        .problem, "member '\(member)'",
        "two machines have the name: \(reason.stringValue ?? "")",
        advice: "let one of the two members leave, and join under another name")
    }
    for (channel, state) in status["channels"]?.dictionaryValue ?? [:] {
      guard let trouble = state["trouble"]?.stringValue else { continue }
      add(
        .problem, "channel '\(channel)'", "it is not carried: \(trouble)",
        advice: "if another machine is its home, too, leave the channel to that machine with "
          + "'wormhole bridge channel \(channel) --to MACHINE'")
    }
    for (queue, state) in status["queues"]?.dictionaryValue ?? [:] {
      guard let trouble = state["trouble"]?.stringValue else { continue }
      add(
        .problem, "queue '\(queue)'", "it is not carried: \(trouble)",
        advice: "if it has more than one home, move all but one with 'wormhole bridge queue "
          + "\(queue) --to MACHINE'")
    }
    for (machine, flow) in status["machines"]?.dictionaryValue ?? [:] {
      guard let trouble = flow["trouble"]?.stringValue else { continue }
      add(.problem, "machine \(machine)", "its flows stand still: \(trouble)")
    }
    if let clock = status["clock"]?.doubleValue, abs(clock) > 5 {
      add(
        .note, "clock", "the servers' clock is \(Int(clamping: clock)) s ahead of this machine's",
        advice: "synchronize the clocks; times to live are corrected")
    }
  }

  // MARK: The flows

  private mutating func inspectFlows() {
    inspectFlows("out") { doctor, machine throws(WormholeError) in try doctor.inspectOut(machine) }
    inspectFlows("in") { doctor, machine throws(WormholeError) in try doctor.inspectIn(machine) }
  }

  private mutating func inspectFlows(
    _ direction: String, _ body: (inout BridgeDoctor, String) throws(WormholeError) -> Void
  ) {
    look(at: "bridge/\(direction)") { doctor throws(WormholeError) in
      let folder = try BridgeFolder([direction], of: doctor.container.storage)
      for machine in try folder.names().sorted() where Incarnation(rawValue: machine) != nil {
        doctor.look(at: "bridge/\(direction)/\(machine)") { doctor throws(WormholeError) in
          try body(&doctor, machine)
        }
      }
    }
  }

  private mutating func inspectOut(_ machine: String) throws(WormholeError) {
    let path = "bridge/out/\(machine)"
    let folder = try BridgeFolder(["out", machine], of: container.storage)
    let names = try folder.names().sorted()
    guard let state = try folder.read(OutFlow.stateName).flatMap({ FlowState($0) }) else {
      return
    }
    var (next, chain, count): (Int, EntryChain, Int) = (state.next, state.chain, 0)
    var oldest: Date?
    for file in names where Int(fileName: file) != nil {
      // A bridge that runs may have removed it in the meantime.
      guard let list = try folder.read(file) else { continue }
      guard let record = FlowRecord(list), record.flow == state.flow else {
        throw folder.damaged(file)
      }
      guard record.last >= state.next else { continue }
      guard record.first == next, record.before == chain else {
        if isServed { return }
        add(
          .problem, path, "a gap before number \(record.first), after \(next - 1)",
          advice: "restore the file, or make this container a new machine with 'wormhole bridge "
            + "rejoin'")
        return
      }
      (next, chain) = (record.last + 1, record.chain(upTo: record.last))
      count += record.entries.count
      if oldest == nil { oldest = try folder.date(of: file) }
    }
    let refusals = names.filter { $0.ends(with: Refusals.mark) }.count
    if refusals > 0 {
      add(.note, path, "\(refusals) refused messages whose outcomes are on their way")
    }
    guard count > 0 else {
      return add(.fine, path, "everything is confirmed, \(next - 1) entries")
    }
    let age = oldest.map { max(0, Int64(clamping: Date().timeIntervalSince($0))) } ?? 0
    let what = "\(count) entries are not confirmed, the oldest since \(age) s"
    guard age > Self.longestTransit else { return add(.note, path, what) }
    add(
      .problem, path, what,
      advice: "start the bridge of machine \(machine); if the machine is lost permanently, run "
        + "'wormhole bridge evict \(machine)'")
  }

  private mutating func inspectIn(_ machine: String) throws(WormholeError) {
    let path = "bridge/in/\(machine)"
    let folder = try BridgeFolder(["in", machine], of: container.storage)
    if let list = try folder.read(InFlow.cursorName) {
      guard let cursor = FlowCursor(list) else { throw folder.damaged(InFlow.cursorName) }
      add(.fine, path, "\(cursor.number) entries received")
    }
    for (file, kept) in try KeptMessages.all(in: folder) {
      add(
        .problem, "\(path)/\(file)",
        "message '\(kept.name.id)' to '\(kept.receiver)' cannot be delivered: \(kept.reason)",
        advice: "give this user access to the member's directory; the next start of the bridge "
          + "makes the message a dead letter of '\(kept.receiver)', which can be retried")
    }
  }
}
