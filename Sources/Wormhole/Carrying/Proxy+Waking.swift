internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Wakes of members of other machines, which programs of this machine ask for.
///
/// A program writes the record of a start, as for a member of this machine, and waits for the
/// member or for a failure in the record. The carrier enters its own process as the one that
/// starts the member. So while the carrier runs, no program asks again; if it is killed, the next
/// record is for the next carrier.
extension Proxy {
  /// Takes a wake that no carrier has taken; returns its ID.
  package func takeWake() throws(WormholeError) -> String? {
    let container = carrier.container
    let slot = try WakeRecord.slot(of: name, in: container.storage)
    guard let record = WakeRecord(try slot.read()), isOpen(record) else { return nil }
    var isTaken = false
    try change(slot, record.id) { record in
      guard isOpen(record) else { return }
      let own = ProcessIdentity.current
      (record.process, record.namespace) = (own.process, own.namespace)
      record.ticks = ProcessStatus(of: own.process)?.started
      isTaken = true
    }
    return isTaken ? record.id : nil
  }

  /// A record that is older was given up by the programs that wait.
  private func isOpen(_ record: WakeRecord) -> Bool {
    let options = carrier.container.options
    let age = Duration.nanoseconds(options.environment.sinceBoot() - record.started)
    return record.machine == machine && record.process == nil && record.failure == nil
      && age >= .zero && age < options.wakeGrace
  }

  /// The other machine has not started the member: the programs that wait learn the reason.
  package func failWake(_ id: String, _ reason: String) throws(WormholeError) {
    let container = carrier.container
    let slot = try WakeRecord.slot(of: name, in: container.storage)
    try change(slot, id) { record in
      record.failure = reason
      record.ended = container.options.environment.sinceBoot()
    }
  }

  private func change(
    _ slot: Slot, _ id: String, _ body: (inout WakeRecord) -> Void
  ) throws(WormholeError) {
    do {
      try WakeRecord.change(slot, id, Patience(within: .seconds(1)), body)
    } catch {
      throw WormholeError(error, "wake", name, otherwise: .system)
    }
  }
}
