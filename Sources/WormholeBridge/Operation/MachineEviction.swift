internal import Wormhole
internal import WormholeContainerStorage
internal import WormholeRelay
internal import WormholeSyscalls

/// Gives up a machine that is lost permanently.
///
/// 1. The machine's record on the servers gets the next generation, and the mark that the machine
///    was given up. If the machine reappears, its bridge ends, and the bridges of the group ignore
///    the machine.
/// 2. Each home record of the machine is changed to that of a free name, by compare-and-set.
///
/// If a record was changed since it was read, all records are read again, and the steps that are
/// still missing are done: the mark is made once, and a name that has another home by then is left
/// alone. A machine that was started again answers, and is not given up.
///
/// Every other bridge, when it reads the mark, puts back what is in transit to the machine, or
/// makes dead letters of it, and lets its own programs join under the free names. Killed at any
/// point, the command is run again.
package enum MachineEviction {
  private static let operation = "give up machine"
  /// The machine as which the command asks; no container has this name.
  private static let asker = "0000000000000000"
  /// How often the records are read at most.
  private static let attempts = 5

  /// Returns how many names are free now that were not before.
  ///
  /// - Parameter drops: whether messages that wait for the machine become dead letters.
  package static func run(
    _ settings: Bridge.Settings, _ machine: String, drops: Bool
  ) throws -> Int {
    try ServerDialog.run(settings, "wormhole-evict") { dialog in
      let subjects = try Subjects(group: settings.group, dialog.deployment())
      var count = 0
      for _ in 1...attempts {
        let records = try dialog.records(subjects)
        guard let found = records.machines[machine] else {
          throw WormholeError(
            .notFound, operation, machine,
            because: "group '\(settings.group)' has no such machine",
            hint: "list the machines with 'wormhole bridge status'")
        }
        if found.record.fate == nil {
          try checkAbsence(of: machine, dialog)
          guard try fence(machine, found, drops, subjects, dialog) else { continue }
        }
        if try free(machine, records, subjects, dialog, &count) { return count }
      }
      throw WormholeError(
        .conflict, operation, machine,
        because: "its records were changed in the meantime, in each of \(attempts) attempts",
        hint: "run the command again, if the machine is lost")
    }
  }

  /// Frees the names of a machine; returns false if a record was changed since it was read.
  private static func free(
    _ machine: String, _ records: GroupRecords, _ subjects: Subjects, _ dialog: ServerDialog,
    _ count: inout Int
  ) throws -> Bool {
    var isComplete = true
    func clear(_ subject: String, _ home: Home, _ bytes: [UInt8]) throws {
      if try dialog.changes(subject, after: home.sequence, bytes) {
        count += 1
      } else {
        isComplete = false
      }
    }
    for (member, home) in records.homes where home.machine == machine {
      try clear(try subjects.memberRecord(member), home, Home.bytes(nil, after: home))
    }
    for (channel, home) in records.channels where home.machine == machine {
      try clear(try subjects.channelRecord(channel), home, Home.bytes(nil))
    }
    return isComplete
  }

  private static func checkAbsence(of machine: String, _ dialog: ServerDialog) throws {
    do {
      _ = try dialog.result { handler in
        dialog.connection.request(
          Subjects.word(.here, to: machine, from: asker), [], within: .seconds(3)
        ) { handler($0) }
      }
    } catch let failure as RelayFailure {
      guard failure.kind == .noResponders || failure.kind == .timedOut else { throw failure }
      return
    }
    throw WormholeError(
      .conflict, operation, machine, because: "its bridge answers",
      hint: "end its bridge first, or move its members with 'wormhole bridge move'")
  }

  /// Marks a machine as given up; returns false if its record was changed since it was read.
  private static func fence(
    _ machine: String, _ found: (record: MachineRecord, sequence: UInt64), _ drops: Bool,
    _ subjects: Subjects, _ dialog: ServerDialog
  ) throws -> Bool {
    let nonce = String(SystemRandom.number(), radix: 16)
    let record = MachineRecord(
      generation: found.record.generation.addingClamped(1), nonce: nonce,
      fate: drops ? .deadLetter : .putBack)
    return try dialog.changes(
      subjects.machineRecord(machine), after: found.sequence, record.bytes)
  }
}
