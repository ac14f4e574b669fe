internal import Synchronization
public import WormholeContainerStorage
internal import WormholeSyscalls

/// Receiving with asynchronous closures, and with closures of actors.
extension Member {
  /// Delivers the messages sent to this member to an asynchronous closure, one at a time.
  ///
  /// As ``receive(kinds:acknowledging:on:_:)``: the next message is delivered after the closure has
  /// returned. A task of the library calls the closure, on its actor if the closure is isolated to
  /// an actor. After a stop on the same actor, the closure is not entered again.
  ///
  /// ``Subscription/stop()`` and leaving cancel the task of a call in progress. A closure that
  /// returns nevertheless has handled its message. If it throws, the message is requeued, and no
  /// attempt is counted. ``Subscription/finished()`` and `await leave(within:)` wait for the call;
  /// `stop()` does not, so a receiver that starts at once may get later messages before that
  /// message. ``MailboxOptions/handlingDeadline`` limits the time of a call.
  ///
  /// - Parameters:
  ///   - kinds: the wanted kinds, as given by the sender; nil for all.
  ///   - acknowledgement: whether the closure's return acknowledges the message.
  ///   - handler: receives each message.
  @discardableResult
  public func receive(
    kinds: Set<String>? = nil, acknowledging acknowledgement: Acknowledgement = .automatic,
    _ handler: @escaping @isolated(any) @Sendable (Message) async throws -> Void
  ) throws(WormholeError) -> Subscription {
    try receive(kinds, acknowledgement, isolation: handler.isolation) { try await handler($0) }
  }

  /// Delivers the messages sent to this member to a closure of the main actor, one at a time:
  /// `receive { @MainActor message in … }`.
  ///
  /// All rules for asynchronous closures apply.
  ///
  /// - Parameters:
  ///   - kinds: the wanted kinds, as given by the sender; nil for all.
  ///   - acknowledgement: whether the closure's return acknowledges the message.
  ///   - handler: receives each message.
  @discardableResult
  public func receive(
    kinds: Set<String>? = nil, acknowledging acknowledgement: Acknowledgement = .automatic,
    _ handler: @escaping @MainActor @Sendable (Message) throws -> Void
  ) throws(WormholeError) -> Subscription {
    try receive(kinds, acknowledgement, isolation: MainActor.shared) { try await handler($0) }
  }

  /// Delivers the values of a type that are sent to this member to an asynchronous closure.
  ///
  /// All rules for messages apply; the kind is by default the type's name. A value that does not
  /// decode is a failed attempt.
  ///
  /// - Parameters:
  ///   - type: the type of the values.
  ///   - kind: the kind given by the sender; by default the name of the type.
  ///   - handler: receives each value and its message.
  @discardableResult
  public func receive<Value: Decodable & Sendable>(
    _ type: Value.Type, kind: String? = nil,
    _ handler: @escaping @isolated(any) @Sendable (Value, Message) async throws -> Void
  ) throws(WormholeError) -> Subscription {
    let kinds: Set = [kind ?? MessageKind.name(of: type)]
    return try receive(kinds, .automatic, isolation: handler.isolation) { message in
      try await handler(message.value(as: type), message)
    }
  }

  /// Delivers the values of a type that are sent to this member to a closure of the main actor.
  ///
  /// All rules for asynchronous closures apply; the kind is by default the type's name.
  ///
  /// - Parameters:
  ///   - type: the type of the values.
  ///   - kind: the kind given by the sender; by default the name of the type.
  ///   - handler: receives each value and its message.
  @discardableResult
  public func receive<Value: Decodable & Sendable>(
    _ type: Value.Type, kind: String? = nil,
    _ handler: @escaping @MainActor @Sendable (Value, Message) throws -> Void
  ) throws(WormholeError) -> Subscription {
    let kinds: Set = [kind ?? MessageKind.name(of: type)]
    return try receive(kinds, .automatic, isolation: MainActor.shared) { message in
      try await handler(message.value(as: type), message)
    }
  }

  private func receive(
    _ kinds: Set<String>?, _ acknowledgement: Acknowledgement,
    isolation: (any Actor)?,
    _ handler: nonisolated(nonsending) @escaping @Sendable (Message) async throws -> Void
  ) throws(WormholeError) -> Subscription {
    try WormholeError.checkQueues("receive as", mailbox.home.name)
    let receiver = TaskReceiver(
      StopOnRelease(try Pump(mailbox, kinds)), acknowledgement, isolation: isolation, handler)
    let subscription = live.subscribe(receiver)
    mailbox.tasks.add(receiver)
    receiver.begin()
    return subscription
  }
}

/// A receiver with an asynchronous closure.
final class TaskReceiver: Stoppable {
  private let pump: StopOnRelease<Pump>
  private let acknowledgement: Acknowledgement
  private let isolation: (any Actor)?
  private let handler: nonisolated(nonsending) @Sendable (Message) async throws -> Void
  /// The time for a call of the closure; nil if the program has set none.
  private let limit: CallLimit?
  private let isStopped = Atomic<Bool>(false)
  private let pending = Monitor(PendingCall())
  private let tasks = CallTasks()
  private let hasEnded = Monitor(false)

  private struct PendingCall {
    /// The message whose call waits for the closure's actor.
    var message: Message?
    /// Whether no call begins any more.
    var isOver = false
  }

  init(
    _ pump: StopOnRelease<Pump>, _ acknowledgement: Acknowledgement,
    isolation: (any Actor)?,
    _ handler: nonisolated(nonsending) @escaping @Sendable (Message) async throws -> Void
  ) {
    self.pump = pump
    self.acknowledgement = acknowledgement
    self.isolation = isolation
    self.handler = handler
    limit = pump.one.mailbox.container.options.mailbox.handlingDeadline.map {
      CallLimit($0, pump.one.mailbox)
    }
  }

  private var hasStopped: Bool { isStopped.load(ordering: .acquiring) }

  func begin() {
    tasks.begin {
      await self.run()
      self.limit?.end()
      // A member that leaves waits for this moment.
      self.hasEnded.signal { $0 = true }
      self.pump.one.mailbox.tasks.remove(self)
    }
  }

  private func run() async {
    while !hasStopped, let work = await pump.one.next() {
      switch work {
      case .message(let message): await handle(message)
      case .file(let file):
        let hand = BatchCursor(file)
        while !hasStopped, let message = hand.next() { await handle(message) }
      }
    }
  }

  private func handle(_ message: Message) async {
    let isLate = pending.withLock { pending in
      if !pending.isOver { pending.message = message }
      return pending.isOver
    }
    guard !isLate else { return message.requeue() }
    do {
      // If the receiver was stopped before the call, the stopping thread has requeued the message.
      guard try await call(message) else { return }
      if acknowledgement == .automatic { message.acknowledgeForSure() }
    } catch {
      // A closure whose task is cancelled ends in order: no attempt is counted.
      if hasStopped, !Mutants.has(.failCancelled) { return message.interrupt() }
      pump.one.mailbox.reject(message, "\(error)")
    }
  }

  private func call(_ message: Message) async throws -> Bool {
    guard let limit else { return try await call(message, on: isolation) }
    // A task of its own, as the limit cancels this call and no later one.
    let call = Task { try await self.call(message, on: self.isolation) }
    limit.begin(message) { call.cancel() }
    let result = await withTaskCancellationHandler {
      await call.result
    } onCancel: {
      call.cancel()
    }
    if let error = limit.finish() { throw error }
    return try result.get()
  }

  /// Checked on the closure's actor, so that no stop can come between check and call.
  private func call(_ message: Message, on actor: isolated (any Actor)?) async throws -> Bool {
    let isOver = pending.withLock { pending in
      if !pending.isOver { pending.message = nil }
      return pending.isOver
    }
    guard !isOver else { return false }
    try await handler(message)
    return true
  }

  func stop() {
    isStopped.store(true, ordering: .releasing)
    pump.stop()
    tasks.cancel()
    let mailbox = pump.one.mailbox
    guard mailbox.container.storage.isOwned else { return }
    // The actor may be busy for long. A member that leaves returns the message before its name is
    // released: the next incarnation would count the attempt.
    mailbox.givingBack {
      let message = pending.withLock { pending in
        pending.isOver = true
        return pending.message.take()
      }
      message?.requeue()
    }
  }

  var callTasks: CallTasks? { tasks }

  /// Waits until the task has ended; returns whether it has.
  ///
  /// Not for the task itself, which cannot wait for its own end.
  func wait(until deadline: Instant) -> Bool {
    hasEnded.wait(until: deadline) { $0 ? true : nil } ?? false
  }

  /// Whether the current task calls this receiver's closure.
  var isCurrent: Bool { tasks.isCurrent }
}

/// The time limit for the calls of one closure, which come one after the other.
private final class CallLimit: Sendable {
  private struct Call {
    let message: Message
    let due: Instant
    let cancel: @Sendable () -> Void
    var isLate = false
  }

  /// The reason of a failed attempt.
  struct DeadlineFailure: Error, CustomStringConvertible {
    let limit: Duration
    var description: String { "the closure took longer than the handling deadline of \(limit)" }
  }

  private let limit: Duration
  private let mailbox: Mailbox
  private let worker: Worker
  private let call = Monitor(Call?.none)
  private var time: MailTime { mailbox.container.options.time }

  init(_ limit: Duration, _ mailbox: Mailbox) {
    self.limit = limit
    self.mailbox = mailbox
    worker = Worker(staysOffWatcher: false, mailbox.container.options.time)
    worker.begin { [weak self] in self?.look() }
  }

  func end() { worker.end() }

  func begin(_ message: Message, _ cancel: @escaping @Sendable () -> Void) {
    let due = time.now + limit
    call.withLock { $0 = Call(message: message, due: due, cancel: cancel) }
    worker.trigger(at: due)
  }

  /// Ends the call; returns an error if the time has passed.
  func finish() -> DeadlineFailure? {
    let isLate = call.withLock { exchange(&$0, with: nil)?.isLate == true }
    return isLate ? DeadlineFailure(limit: limit) : nil
  }

  private func look() {
    let now = time.now
    let (late, next) = call.withLock { call -> (Call?, Instant?) in
      guard let current = call, !current.isLate, !Mutants.has(.ignoreHandlingDeadline) else {
        return (nil, nil)
      }
      guard current.due <= now else { return (nil, current.due) }
      call?.isLate = true
      return (current, nil)
    }
    if let next { worker.trigger(at: next) }
    guard let late else { return }
    mailbox.container.log(
      .warning,
      "the handling deadline of message '\(late.message.id)' to '\(mailbox.home.name)' has passed: "
        + "its closure is cancelled",
      about: LogSubject(member: mailbox.home.name, message: late.message.id))
    late.cancel()
  }
}

/// The receivers of a mailbox that have an asynchronous closure.
final class TaskReceivers: Sendable {
  private let all = Monitor<[ObjectIdentifier: TaskReceiver]>([:])

  func add(_ receiver: TaskReceiver) { all.withLock { $0[ObjectIdentifier(receiver)] = receiver } }

  func remove(_ receiver: TaskReceiver) {
    all.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(receiver)) }
  }

  /// Cancels all receivers, and returns those whose closures the current task does not wait in.
  func cancel() -> [TaskReceiver] {
    let receivers = all.withLock { Array($0.values) }
    for receiver in receivers { receiver.stop() }
    return receivers.filter { !$0.isCurrent }
  }
}
