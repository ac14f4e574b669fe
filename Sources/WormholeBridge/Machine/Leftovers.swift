internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists

/// The messages and flows of a container with a machine that was given up.
enum Leftovers {
  /// Puts messages in transit back, marked as possibly received before, or dead-letters everything
  /// that waits for the machine; then its proxies stand for no machine.
  ///
  /// Killed halfway, it is run again at the next start. The messages of a proxy whose directory
  /// cannot be used stay recorded.
  ///
  /// - Throws: the first error, after everything else is done; the call must be repeated.
  static func settle(
    _ machine: String, _ fate: MachineRecord.Fate, _ residents: Residents
  ) throws(WormholeError) {
    let storage = residents.container.storage
    try deliverReceived(from: machine, residents)
    // A directory that cannot be used holds up no other: the caller tries again.
    var failure: WormholeError?
    var held: Set<Carrier.Resident> = []
    func attempt(_ resident: Carrier.Resident, _ body: () throws(WormholeError) -> Void) {
      do throws(WormholeError) {
        try body()
      } catch {
        failure = failure ?? error
        held.insert(resident)
      }
    }
    // Other homes have moved since: the messages in transit to this machine end here alone.
    for (resident, names) in try bound(to: machine, storage) {
      attempt(resident) { () throws(WormholeError) in
        // A proxy of this machine that was closed before is opened here.
        guard let proxy = try residents.receiver(resident), proxy.machine != machine
        else { return }
        try end(proxy.claimed().filter { names.contains($0) }, at: proxy, machine, fate)
      }
    }
    for proxy in residents.all(on: machine) {
      attempt(proxy.resident) { () throws(WormholeError) in
        if fate == .deadLetter {
          for name in try proxy.waiting() { _ = try proxy.claim(name) }
        }
        try end(proxy.claimed(), at: proxy, machine, fate)
      }
    }
    // A record claims its messages again, so it has to go before their names are free.
    try forgetFlow(to: machine, storage, but: held)
    for proxy in residents.all(on: machine) where !held.contains(proxy.resident) {
      attempt(proxy.resident) { () throws(WormholeError) in
        if case .queue(let name) = proxy.resident,
          let home = try residents.carrier.home(ofQueue: name)
        {
          try QueueList(of: storage).keep(term: home.term, of: name)
        }
        try residents.release(proxy.resident)
      }
    }
    if let failure { throw failure }
  }

  private static func end(
    _ names: [MessageName], at proxy: Proxy, _ machine: String, _ fate: MachineRecord.Fate
  ) throws(WormholeError) {
    for name in names {
      switch fate {
      case .putBack: try proxy.putBack(name)
      case .deadLetter: try proxy.giveUp(name, "machine \(machine) was given up")
      }
    }
    try proxy.makeDurable()
  }

  /// The messages that the records of the flow to the machine name.
  private static func bound(
    to machine: String, _ storage: Container
  ) throws(WormholeError) -> [Carrier.Resident: Set<MessageName>] {
    guard try BridgeFolder(["out"], of: storage).names().contains(machine) else { return [:] }
    let flow = try BridgeFolder(["out", machine], of: storage)
    var names: [Carrier.Resident: Set<MessageName>] = [:]
    for file in try flow.names() {
      for entry in try record(file, in: flow)?.entries ?? [] where entry.kind == .message {
        names[entry.resident, default: []].insert(entry.name)
      }
    }
    return names
  }

  /// Returns the record in a file of the flow; nil for another file, and for a damaged one, which
  /// does not keep the machine from being given up.
  private static func record(
    _ file: String, in flow: BridgeFolder
  ) throws(WormholeError) -> FlowRecord? {
    guard Int(fileName: file) != nil else { return nil }
    return try flow.readIfSound(file).flatMap { FlowRecord($0) }
  }

  /// Delivers the received messages if the bridge was killed before their delivery; removes the
  /// pieces of messages that cannot follow any more.
  private static func deliverReceived(
    from machine: String, _ residents: Residents
  ) throws(WormholeError) {
    let storage = residents.container.storage
    guard try BridgeFolder(["in"], of: storage).names().contains(machine) else { return }
    do throws(WormholeError) {
      let refusals = try Refusals(BridgeFolder(["out", machine], of: storage))
      try InFlow(from: machine, residents, refusals).end()
    } catch {
      // As a damaged record. The files stay: the next start tries again.
      guard error.code == .damaged else { throw error }
      storage.log(.warning, "\(error)")
    }
  }

  /// - Parameter closed: the proxies whose messages stay recorded.
  private static func forgetFlow(
    to machine: String, _ storage: Container, but closed: some Collection<Carrier.Resident>
  ) throws(WormholeError) {
    guard try BridgeFolder(["out"], of: storage).names().contains(machine) else { return }
    let flow = try BridgeFolder(["out", machine], of: storage)
    let files = try flow.names()
    guard !files.isEmpty else { return }
    for file in files {
      let record = try Self.record(file, in: flow)
      let rest = record?.entries.filter { $0.kind == .message && closed.contains($0.resident) }
      guard let record, let rest, !rest.isEmpty else {
        try flow.remove(file)
        continue
      }
      // The call is repeated for as long as the directory is closed.
      if rest.count == record.entries.count { continue }
      let left = FlowRecord(
        flow: record.flow, first: record.first, before: record.before, entries: rest)
      try flow.replace(file, by: left.propertyList)
    }
    try flow.makeDurable()
  }
}
