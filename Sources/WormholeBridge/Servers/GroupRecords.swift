internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay

/// The records of a group, as a command has read them.
struct GroupRecords {
  var machines: [String: (record: MachineRecord, sequence: UInt64)] = [:]
  var homes: [String: Home] = [:]

  mutating func take(_ message: StreamMessage, _ subjects: Subjects) {
    switch subjects.record(message.subject) {
    case .machine(let machine):
      if let record = MachineRecord(message.payload) {
        machines[machine] = (record, message.sequence)
      }
    case .member(let member): homes[member] = Home(message)
    case nil: break
    }
  }
}

/// The machine that a member's name belongs to, as the servers have it.
struct Home: Equatable {
  let machine: String
  let sequence: UInt64

  private enum Key { static let machine = "machine" }

  init?(_ message: StreamMessage) {
    guard let json = try? JSONPropertyList.decode(message.payload),
      let machine = json[Key.machine]?.stringValue, Incarnation(rawValue: machine) != nil
    else { return nil }
    (self.machine, sequence) = (machine, message.sequence)
  }

  static func bytes(_ machine: String) -> [UInt8] {
    RecordJSON.bytes([Key.machine: .string(machine)])
  }
}
