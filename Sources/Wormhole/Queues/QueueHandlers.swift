internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The closures of one worker: as many messages are handled at the same time.
final class QueueHandlers: Stoppable {
  private let worker: FollowingWorker
  private let concurrency: Int
  private let handler: @Sendable (Message) async throws -> Void
  private let tasks = CallTasks()

  init(
    _ worker: FollowingWorker, _ concurrency: Int,
    _ handler: @escaping @Sendable (Message) async throws -> Void
  ) {
    self.worker = worker
    self.concurrency = concurrency
    self.handler = handler
  }

  func begin() {
    for _ in 0..<concurrency {
      tasks.begin {
        while let message = await self.worker.next() { await self.handle(message) }
      }
    }
  }

  private func handle(_ message: Message) async {
    // Claimed just before the stop.
    guard !worker.hasStopped else { return message.requeue() }
    do {
      try await handler(message)
      message.acknowledgeForSure()
    } catch {
      worker.settle(message, after: error)
    }
  }

  func stop() {
    guard worker.container.storage.isOwned else { return }
    worker.stop()
    tasks.cancel()
  }

  var callTasks: CallTasks? { tasks }
}

extension FollowingWorker {
  /// Ends the attempt of a handler that has thrown an error.
  func settle(_ message: Message, after error: any Error) {
    // The handler's own call of `acknowledge()` may have thrown.
    guard !message.hasEnded else { return }
    // A handler that is cancelled ends in order: no attempt is counted.
    if hasStopped, !Mutants.has(.failCancelled) { return message.interrupt() }
    reporting(to: message.source.messageClaim.log) { () throws(WormholeError) in
      try message.fail("\(error)")
    }
  }
}
