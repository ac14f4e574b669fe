internal import FoundationEssentials
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists

/// Messages that the home of a queue lends to the workers of this machine.
extension InFlow {
  /// The longest time under way of a lent message: afterwards the home may have given the message
  /// to another worker.
  static let longestWay = LentQueue.deadline / 2

  /// Stages a lent message.
  ///
  /// A message that cannot be staged is only dropped. The heartbeats do not state the message, and
  /// the message goes back at the deadline.
  func take(
    _ job: FlowJob, _ entry: FlowEntry, _ number: Int, _ body: [UInt8], age: Int64,
    until expiry: (Date?) -> Date?, _ intake: inout Intake
  ) throws(WormholeError) {
    guard entry.isQueue, residents[entry.resident]?.machine == machine,
      Duration.nanoseconds(age) < Self.longestWay
    else { return }
    do throws(WormholeError) {
      let message = try residents.carrier.message(entry.name, body)
      guard message.receiver == entry.receiver, message.fileSize == nil else { return }
      let origin = MessageOrigin(
        machine: machine, receiver: entry.receiver, name: entry.name, isQueue: true, job: job)
      let bytes = try message.delivered(
        from: origin.propertyList, expires: expiry(message.expires))
      let name = try residents.carrier.arrivalName(of: entry.name)
      try folder.write(number.fileName, bytes)
      intake.steps.append(.lend(number: number, to: entry.receiver, as: name, job))
    } catch {
      guard error.isRefusal else { throw error }
      residents.container.note(refused: entry, from: machine, error)
    }
  }

  func lend(
    _ number: Int, _ name: MessageName, _ job: FlowJob, to queue: String
  ) throws(WormholeError) {
    do throws(WormholeError) {
      _ = try residents.carrier.lend(
        number.fileName, in: folder.directory, as: name, attempt: job.attempt,
        isMarked: job.isMarked, to: queue)
    } catch {
      guard error.isClosed else { throw error }
      residents.container.storage.log(.warning, "\(error)")
      // After the deadline, the home lends the message again, under another number.
      try folder.remove(number.fileName)
    }
  }
}
