internal import Wormhole
internal import WormholeContainerStorage

/// Contexts that arrive.
extension InFlow {
  /// Stages or refuses a context.
  ///
  /// The sender keeps no file for an outcome, and sets another context.
  func take(
    context body: [UInt8], _ entry: FlowEntry, _ number: Int, _ intake: inout Intake
  ) throws(WormholeError) {
    do throws(WormholeError) {
      guard try isWanted(body, entry) else { return }
    } catch {
      guard error.isRefusal else { throw error }
      return residents.container.note(refused: entry, from: machine, error)
    }
    try folder.write(number.fileName, body)
    intake.steps.append(.context(number: number, to: entry.receiver, entry.name))
  }

  /// Checks a context; false if the present context is newer.
  ///
  /// The sender's name must belong to the machine, since a context replaces the sender's earlier
  /// context. But a former home of the receiver hands contexts on, possibly late.
  private func isWanted(_ body: [UInt8], _ entry: FlowEntry) throws(WormholeError) -> Bool {
    let (receiver, setAt) = try residents.carrier.envelope(ofContext: body)
    guard let name = entry.contextSender, receiver == entry.receiver else {
      throw WormholeError(
        .damaged, "deliver context", entry.receiver,
        because: "it names another receiver than its envelope, or no sender")
    }
    let sender = Carrier.Resident.member(name)
    try check(sender, of: entry)
    guard (try? residents.check(sender, isOf: machine)) != nil else {
      // Both dates are of the sender's clock.
      let last = try residents.carrier.lastContext(from: name, to: receiver)
      return last.map { $0 < setAt } ?? true
    }
    _ = try residents.proxy(of: sender, on: machine)
    return true
  }

  /// Delivers a staged context; a member whose directory is closed holds up no other.
  func deliver(
    context number: Int, _ name: MessageName, to receiver: String
  ) throws(WormholeError) {
    guard case .member(let sender)? = name.sender else { return }
    do throws(WormholeError) {
      try residents.carrier.deliverContext(
        number.fileName, in: folder.directory, from: sender, to: receiver)
    } catch {
      guard error.isClosed else { throw error }
      residents.container.storage.log(.warning, "\(error)")
      // The sender sets further contexts, and each of them would leave a file.
      try folder.remove(number.fileName)
    }
  }
}
