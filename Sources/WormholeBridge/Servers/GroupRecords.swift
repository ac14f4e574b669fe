internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay

/// The records of a group, as a command has read them.
struct GroupRecords {
  var machines: [String: (record: MachineRecord, sequence: UInt64)] = [:]
  var homes: [String: Home] = [:]
  /// The homes of channels.
  var channels: [String: Home] = [:]

  var isEmpty: Bool { machines.isEmpty && homes.isEmpty && channels.isEmpty }

  mutating func take(_ message: StreamMessage, _ subjects: Subjects) {
    switch subjects.record(message.subject) {
    case .machine(let machine):
      if let record = MachineRecord(message.payload) {
        machines[machine] = (record, message.sequence)
      }
    case .member(let member): homes[member] = Home(message)
    case .channelHome(let channel): channels[channel] = Home(message)
    case .channelCopy, nil: break
    }
  }
}

/// The machine that a member's name belongs to, as the servers have it.
struct Home: Equatable {
  /// Nil for a name that is free, after its machine was lost.
  let machine: String?
  /// The machines that were the home before, and hand on messages that still arrive.
  let before: [String]
  let sequence: UInt64

  /// Why a name has no home.
  static let unreadable = "the record of its home cannot be read"
  private static let mostBefore = 16
  private enum Key { static let (machine, before) = ("machine", "before") }

  init?(_ message: StreamMessage) {
    guard let json = try? JSONPropertyList.decode(message.payload),
      let machine = json[Key.machine]?.stringValue,
      machine.isEmpty || Incarnation(rawValue: machine) != nil
    else { return nil }
    self.machine = machine.isEmpty ? nil : machine
    before = (json[Key.before]?.arrayValue ?? []).prefix(Self.mostBefore).compactMap(\.stringValue)
    sequence = message.sequence
  }

  /// The record of a home; with nil, of a free name.
  static func bytes(_ machine: String?, after home: Home? = nil) -> [UInt8] {
    let before = ([home?.machine].compactMap { $0 } + (home?.before ?? [])).prefix(mostBefore)
    var json: [String: PropertyListValue] = [Key.machine: .string(machine ?? "")]
    if !before.isEmpty { json[Key.before] = .array(before.map { .string($0) }) }
    return RecordJSON.bytes(.dictionary(json))
  }
}
