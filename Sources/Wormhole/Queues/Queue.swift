public import WormholeContainerStorage
internal import WormholeSyscalls

/// A queue of jobs that any number of workers share: each message is handled by one of them.
///
/// A member's messages go to the one process that has joined under its name. A queue has no such
/// process: each process that opens the queue may send, and each process that calls
/// ``work(concurrency:handlingDeadline:_:)`` is a worker. The messages of a killed worker are
/// redelivered at once; those of a worker that is suspended or hangs, after the handling deadline.
/// They are marked: ``Message/isRedelivered`` is true.
///
/// With one worker, messages are handled in the order of sending; with several, they are started in
/// this order.
public struct Queue<Job: Codable & Sendable>: Sendable {
  /// The queue's name.
  public let name: String
  private let container: SharedContainer
  private let peer: Peer

  init(_ name: String, _ container: SharedContainer, sender: Member?) {
    self.name = name
    self.container = container
    peer = Peer(container: container, member: sender, folder: .queues, name: name)
  }

  // MARK: Sending

  /// Sends a message to the queue; as a message to a ``Peer``, with all options.
  @discardableResult
  public func send(
    _ job: Job, _ options: SendOptions = SendOptions()
  ) throws(WormholeError) -> Sent {
    try peer.send(job, options)
  }

  /// Sends many messages with one sync; each is a message of its own.
  @discardableResult
  public func send(
    contentsOf jobs: [Job], _ options: SendOptions = SendOptions()
  ) throws(WormholeError) -> [Sent] {
    try peer.send(contentsOf: jobs, options)
  }

  /// Sends a message to the queue.
  ///
  /// The async overload; runs off the task's thread.
  @discardableResult
  public func send(
    _ job: Job, _ options: SendOptions = SendOptions()
  ) async throws(WormholeError) -> Sent {
    let peer = peer
    return try await OffPool.run("send message to", name) { () throws(WormholeError) in
      try peer.send(job, options)
    }
  }

  /// Sends many messages with one sync; each is a message of its own.
  ///
  /// The async overload; runs off the task's thread.
  @discardableResult
  public func send(
    contentsOf jobs: [Job], _ options: SendOptions = SendOptions()
  ) async throws(WormholeError) -> [Sent] {
    let peer = peer
    return try await OffPool.run("send message to", name) { () throws(WormholeError) in
      try peer.send(contentsOf: jobs, options)
    }
  }

  /// Sends a message with a file.
  ///
  /// All rules of `send(file:metadata:mode:_:progress:)` of a ``Peer`` apply. The file stays until
  /// the message is acknowledged: a worker takes a copy with
  /// `move(to:replacing:progress:)` of ``Message/file``.
  @discardableResult
  public func send(
    _ job: Job, file path: String, mode: TransferMode = .copying,
    _ options: SendOptions = SendOptions(),
    progress: ((FileProgress) -> ProgressDecision)? = nil
  ) throws(WormholeError) -> Sent {
    try peer.send(file: path, metadata: job, mode: mode, options, progress: progress)
  }

  /// Sends a message with a file.
  ///
  /// The async overload; runs off the task's thread, including the progress closure.
  @discardableResult
  public func send(
    _ job: Job, file path: String, mode: TransferMode = .copying,
    _ options: SendOptions = SendOptions(),
    progress: (@Sendable (FileProgress) -> ProgressDecision)? = nil
  ) async throws(WormholeError) -> Sent {
    try await peer.send(file: path, metadata: job, mode: mode, options, progress: progress)
  }

  // MARK: Working

  /// Handles messages until the subscription is stopped.
  ///
  /// A closure that returns has handled its message, also if its task was cancelled in the
  /// meantime. If it throws, the attempt has failed: the message is redelivered after
  /// ``MailboxOptions/retryDelay``, and goes to the dead letters after the last attempt. A closure
  /// that throws after ``Subscription/stop()`` gives its message back, and no attempt is counted.
  ///
  /// - Parameters:
  ///   - concurrency: how many messages are handled at the same time.
  ///   - deadline: the time after which another worker may have a message that is not
  ///     acknowledged; nil for ever. It may be handled a second time then, while this closure still
  ///     runs, whose acknowledgement is refused. ``Message/renew()`` starts the time anew.
  ///   - handler: receives each value and its message.
  @discardableResult
  public func work(
    concurrency: Int = 1, handlingDeadline deadline: Duration? = .seconds(30),
    _ handler: @escaping @isolated(any) @Sendable (Job, Message) async throws -> Void
  ) throws(WormholeError) -> Subscription {
    try TaskPool.start("work on queue", name)
    let concurrency = max(1, concurrency)
    let worker = try worker(deadline, concurrency)
    let handlers = QueueHandlers(worker, concurrency) { message in
      try await handler(message.value(as: Job.self), message)
    }
    let subscription = try keep(handlers, worker)
    handlers.begin()
    return subscription
  }

  /// The messages of the queue, each with an explicit outcome.
  ///
  /// Each iterator is a worker, which claims a message when the loop asks for one. All rules of
  /// ``Member/deliveries`` apply to the messages.
  ///
  /// - Parameter deadline: as in ``work(concurrency:handlingDeadline:_:)``.
  public func deliveries(
    handlingDeadline deadline: Duration? = .seconds(30)
  ) -> QueueDeliveries {
    QueueDeliveries { () throws(WormholeError) in
      let worker = try self.worker(deadline)
      try worker.watchEnd()
      return worker
    }
  }

  /// A worker for threads, which wait for a message.
  ///
  /// - Parameter deadline: as in ``work(concurrency:handlingDeadline:_:)``.
  package func callers(
    concurrency: Int = 1, handlingDeadline deadline: Duration?
  ) throws(WormholeError) -> QueueCallers {
    let worker = try worker(deadline, concurrency)
    return QueueCallers(worker: worker, subscription: try keep(worker, worker))
  }

  /// Keeps a worker until its stop, or the end of the container.
  private func keep(
    _ one: any Stoppable, _ worker: FollowingWorker
  ) throws(WormholeError) -> Subscription {
    let begun = container.subscriptions
    let subscription = try begun.keep(one)
    do throws(WormholeError) {
      try worker.watchEnd { [weak one] error in
        guard let one else { return }
        begun.forget(one, error)
        one.stop()
      }
    } catch {
      subscription.stop()
      throw error
    }
    return subscription
  }

  private func worker(
    _ deadline: Duration?, _ room: Int = 1
  ) throws(WormholeError) -> FollowingWorker {
    try FollowingWorker(name, container, deadline: deadline, room: room)
  }

  // MARK: Inspection

  /// The messages that are not settled: first the claimed ones and those that wait for another
  /// attempt, then the waiting ones, in order, and then the delayed ones.
  public var messages: [QueuedMessage] {
    get throws(WormholeError) { try peer.queue }
  }

  /// The messages from this sender that are not settled, in order.
  public var pendingMessages: [Sent] {
    get throws(WormholeError) { try peer.pendingMessages }
  }

  /// Cancels a waiting message; see ``Peer/cancel(id:)``.
  public func cancel(id: String) throws(WormholeError) -> Cancellation {
    try peer.cancel(id: id)
  }

  /// Cancels the waiting messages, as `purge(kind:olderThan:)` of a ``Peer`` does.
  @discardableResult
  public func purge(
    kind: String? = nil, olderThan age: Duration? = nil
  ) throws(WormholeError) -> Int {
    try peer.purge(kind: kind, olderThan: age)
  }

  /// The dead letters, in the order in which they were sent.
  public var deadLetters: [DeadLetter] {
    get throws(WormholeError) { try peer.deadLetters }
  }

  /// Moves a dead letter back into the queue; see ``Peer/retry(id:)``.
  public func retry(id: String) throws(WormholeError) -> Bool { try peer.retry(id: id) }

  /// Removes a dead letter permanently; see ``Peer/discard(id:)``.
  public func discard(id: String) throws(WormholeError) -> Bool { try peer.discard(id: id) }
}

extension Peer {
  /// The queue of this name, as an addressee of the same sender.
  package var ofQueue: Peer {
    Peer(
      container: container, member: member, guest: guest, sender: sender, folder: .queues,
      name: name)
  }
}

extension SharedContainer {
  /// Returns a queue; it need not exist yet.
  ///
  /// The call reads nothing. An invalid name is an error when the queue is used.
  public func queue<Job: Codable & Sendable>(
    _ name: String, of type: Job.Type = Job.self
  ) -> Queue<Job> {
    Queue(name, self, sender: nil)
  }

  /// The names of all queues, in order.
  public func queues() throws(WormholeError) -> [String] { try storage.names(in: .queues) }

  /// Whether a member has the name, joined or not.
  package func isMember(_ name: String) throws(WormholeError) -> Bool {
    try storage.existingMember(name) != nil
  }

  /// Removes a queue; false if there is none.
  ///
  /// A queue with messages, dead letters or workers is not removed:
  /// ``WormholeError/Code-swift.struct/refused``.
  public func removeQueue(_ name: String) throws(WormholeError) -> Bool {
    try storage.removeMember(name, in: .queues)
  }
}

extension Member {
  /// Returns a queue to which this member sends: it is notified of the outcomes of its messages.
  public func queue<Job: Codable & Sendable>(
    _ name: String, of type: Job.Type = Job.self
  ) -> Queue<Job> {
    Queue(name, container, sender: self)
  }
}

/// The messages of a queue, as an asynchronous sequence with explicit outcomes.
///
/// The sequence ends when the task is cancelled, or when the container is closed.
public struct QueueDeliveries: AsyncSequence, Sendable {
  /// The errors of the iteration.
  public typealias Failure = WormholeError

  fileprivate let start: @Sendable () throws(WormholeError) -> FollowingWorker

  /// Starts a worker.
  public func makeAsyncIterator() -> Iterator {
    Iterator(
      Result { () throws(WormholeError) in
        try TaskPool.start("work on", "queue")
        return StopOnRelease(try start())
      })
  }

  /// A worker for one task.
  public struct Iterator: AsyncIteratorProtocol {
    /// Nil after the error of a failed start was thrown.
    private var worker: Result<StopOnRelease<FollowingWorker>, WormholeError>?

    fileprivate init(_ worker: Result<StopOnRelease<FollowingWorker>, WormholeError>) {
      self.worker = worker
    }

    /// Returns the next message; nil when the task is cancelled.
    ///
    /// Throws ``WormholeError/Code-swift.struct/notAContainer`` if the container was removed or
    /// moved away.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(WormholeError) -> Message? {
      guard let worker = try self.worker.getFailingOnce() else { return nil }
      try worker.one.checkOwner()
      if let message = await worker.one.next() { return message }
      if let reason = worker.one.reason { throw reason }
      return nil
    }
  }
}
