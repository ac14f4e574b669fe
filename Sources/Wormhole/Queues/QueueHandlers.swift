internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The closures of one worker: as many messages are handled at the same time.
final class QueueHandlers: Stoppable {
  /// The worker whose closure the current task calls.
  @TaskLocal private static var current: ObjectIdentifier?

  private let worker: FollowingWorker
  private let concurrency: Int
  private let handler: @Sendable (Message) async throws -> Void
  private let tasks = Monitor<[Task<Void, Never>]>([])

  init(
    _ worker: FollowingWorker, _ concurrency: Int,
    _ handler: @escaping @Sendable (Message) async throws -> Void
  ) {
    self.worker = worker
    self.concurrency = concurrency
    self.handler = handler
  }

  func begin() {
    // Under the lock: a stop comes before the tasks, which then call no closure, or finds them all.
    tasks.withLock { tasks in
      tasks = (0..<concurrency).map { _ in
        Task.detached {
          await Self.$current.withValue(ObjectIdentifier(self)) {
            while let message = await self.worker.next() { await self.handle(message) }
          }
        }
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
    // A closure that stops its own worker has work left to do.
    if !isCurrent { for task in tasks.withLock({ $0 }) { task.cancel() } }
  }

  func finish() async {
    // No task can wait for its own end.
    guard !isCurrent else { return }
    for task in tasks.withLock({ $0 }) { await task.value }
  }

  private var isCurrent: Bool { Self.current == ObjectIdentifier(self) }
}

extension FollowingWorker {
  /// Ends the attempt of a handler that has thrown an error.
  func settle(_ message: Message, after error: any Error) {
    // The handler's own call of `acknowledge()` may have thrown.
    guard !message.hasEnded else { return }
    // A handler that is cancelled ends in order: no attempt is counted.
    if hasStopped, !Mutants.has(.failCancelled) { return message.interrupt() }
    do throws(WormholeError) {
      try message.fail("\(error)")
    } catch {
      message.source.log(error)
    }
  }
}
