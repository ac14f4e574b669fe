internal import Wormhole
package import WormholeContainerStorage

/// Why a bridge may not continue with this container.
package struct FlowConflict: Error, Equatable, CustomStringConvertible {
  package let reason: String
  package var description: String { reason }
}

extension OutFlow {
  /// The other machine has stored everything up to the position.
  ///
  /// - Throws: ``FlowConflict`` for a number or a hash that was never sent from here: another copy
  ///   of this container has sent it, or this one was restored from a backup.
  package func confirm(_ position: FlowPosition) throws {
    guard position.flow == flow else { return }
    guard position.number < next else {
      throw FlowConflict(
        reason: "machine \(machine) has received number \(position.number) from here, and this "
          + "container has sent \(next - 1)")
    }
    // What is settled can no longer be compared.
    guard position.number >= settled.next - 1 else { return }
    guard position.chain == chain(upTo: position.number) || Mutants.has(.ignoreChain) else {
      throw FlowConflict(
        reason: "machine \(machine) has received another entry \(position.number) from here than "
          + "this container has sent")
    }
    guard position.number > confirmed else { return }
    for record in records where record.first <= position.number && record.last > confirmed {
      for number in max(record.first, confirmed + 1)...min(record.last, position.number) {
        try settle(record[number])
      }
    }
    note(confirmed: position.number)
  }

  /// Whether the servers have a bundle of this flow that this container has never sent.
  ///
  /// Only a copy of this container, or this container before it was restored from a backup, can
  /// have sent it. What another machine states is no proof: a confused one may state anything.
  package func isForeign(_ bundle: FlowBundle) -> Bool {
    guard bundle.flow == flow else { return false }
    guard bundle.last < next else { return true }
    // What is settled can no longer be compared.
    guard bundle.last >= settled.next - 1 else { return false }
    let last = bundle.entries.reduce(bundle.before) { $0.followed(by: $1) }
    return last != chain(upTo: bundle.last)
  }

  private func settle(_ entry: FlowEntry) throws(WormholeError) {
    switch (entry.kind, entry.source) {
    case (.message, _):
      // Otherwise it stays in transit until its outcome arrives.
      guard !entry.name.wantsReceipt else { return }
      guard let proxy = try residents.receiver(entry.resident) else { return }
      _ = try proxy.settle(entry.name, .delivered)
      touched[proxy.resident] = proxy
    case (.outcome(let status), .receipt(let resident, let name)):
      // Without the proxy, nobody has the outcome any more.
      guard let proxy = residents[resident] else { return }
      try proxy.forget(name, status)
      touched[proxy.resident] = proxy
    case (.outcome, .refusal(let file)), (.returned, .refusal(let file)):
      try refusals.remove(file)
    case (.context, _): try settleContext(entry)
    case (.worked, .worked(let file)): try jobs?.settle(file, of: entry.receiver)
    case (.outcome, _), (.cancellation, _), (.returned, _), (.piece, _), (.dropped, _), (.job, _),
      (.worked, _):
      break
    }
  }

  /// How many records are confirmed, and not removed.
  package var unfinished: Int { records.prefix { $0.last <= confirmed }.count }

  /// Whether no record binds a message any more: confirmed records are removed first.
  package func isFree(_ entry: FlowEntry) throws(WormholeError) -> Bool {
    let message = FlowEntry(.message, to: entry.resident, entry.name)
    if isBound(message) { try finish() }
    return !isBound(message)
  }

  /// Removes the records of what is confirmed, after its effects are durable.
  package func finish() throws(WormholeError) {
    let done = records.prefix { $0.last <= confirmed }
    guard let last = done.last else { return }
    for proxy in touched.values { try proxy.makeDurable() }
    touched = [:]
    var transfers = settled.transfers
    for record in done { for entry in record.entries { Self.note(entry, in: &transfers) } }
    try write(
      FlowState(
        flow: flow, next: last.last + 1, chain: last.chain(upTo: last.last), transfers: transfers))
    for record in done {
      forget(record)
      try folder.remove(record.first.fileName)
    }
    records.removeFirst(done.count)
  }
}
