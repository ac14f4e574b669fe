public import Dispatch
internal import Synchronization
public import WormholeContainerStorage
internal import WormholeSyscalls

/// When a message counts as handled.
@nonexhaustive
public enum Acknowledgement: Sendable {
  /// When the closure has returned without throwing.
  case automatic
  /// When ``Message/acknowledge()`` is called.
  case explicit
}

extension Member {
  /// Delivers the messages sent to this member to a closure, one at a time.
  ///
  /// The first messages sent are delivered first. If the closure throws, the message has failed: it
  /// is redelivered later, and goes to the dead letters after ``MailboxOptions/attempts``. If
  /// several closures want a message, they take turns. Delivery continues until the subscription is
  /// stopped or the member leaves, whether or not the returned subscription is retained.
  ///
  /// - Parameters:
  ///   - kinds: the wanted kinds, as given by the sender; nil for all. Messages wanted by no
  ///     closure wait.
  ///   - acknowledgement: whether the closure's return acknowledges the message.
  ///   - queue: where the closure is called; by default on a thread for which no other code waits.
  ///   - handler: receives each message.
  @discardableResult
  public func receive(
    kinds: Set<String>? = nil, acknowledging acknowledgement: Acknowledgement = .automatic,
    on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Message) throws -> Void
  ) throws(WormholeError) -> Subscription {
    try receive(
      kinds: kinds, takingFiles: true, acknowledging: acknowledgement, on: queue, handler)
  }

  /// As ``receive(kinds:acknowledging:on:_:)``.
  ///
  /// Without `takesFiles`, messages with a file stay where they are, unclaimed, and the log reports
  /// them.
  package func receive(
    kinds: Set<String>?, takingFiles takesFiles: Bool,
    acknowledging acknowledgement: Acknowledgement, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Message) throws -> Void
  ) throws(WormholeError) -> Subscription {
    if queue != nil { try TaskPool.start("receive as", name) }
    let receiver = try Receiver(
      mailbox, kinds, takesFiles: takesFiles, acknowledgement, on: queue, handler)
    let subscription = live.subscribe(receiver)
    receiver.begin()
    return subscription
  }

  /// Delivers the values of a type that are sent to this member to a closure.
  ///
  /// As ``receive(kinds:acknowledging:on:_:)``, for messages whose kind is by default the type's
  /// name. A value that does not decode is a failed attempt.
  @discardableResult
  public func receive<Value: Decodable & Sendable>(
    _ type: Value.Type, kind: String? = nil, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Value, Message) throws -> Void
  ) throws(WormholeError) -> Subscription {
    try receive(kinds: [kind ?? MessageKind.name(of: type)], on: queue) { message in
      try handler(message.value(as: type), message)
    }
  }
}

/// A receiver with a closure.
final class Receiver: Stoppable {
  private let mailbox: Mailbox
  private let number: Int
  private let runner: Worker
  private let acknowledgement: Acknowledgement
  private let queue: DispatchQueue?
  private let handler: @Sendable (Message) throws -> Void
  private let isStopped = Atomic<Bool>(false)
  /// The thread that claims a message or runs the closure with a message; 0 for none.
  ///
  /// A gate would cost as much as a message.
  private let worker = Atomic<UInt>(0)
  private let departures = Monitor(0)
  private let queued = Monitor(QueueEntry())

  /// Claimed messages and files that wait for the queue.
  private struct QueueEntry {
    var message: Message?
    /// The file from which more messages follow.
    var hand: BatchCursor?
  }

  /// The action to perform after the call in progress has returned.
  private let afterwards = Monitor<Action?>(nil)

  init(
    _ mailbox: Mailbox, _ kinds: Set<String>?, takesFiles: Bool = true,
    _ acknowledgement: Acknowledgement, on queue: DispatchQueue?,
    _ handler: @escaping @Sendable (Message) throws -> Void
  ) throws(WormholeError) {
    self.mailbox = mailbox
    self.acknowledgement = acknowledgement
    self.queue = queue
    self.handler = handler
    runner = Worker(staysOffWatcher: queue != nil, mailbox.container.options.time)
    number = try mailbox.add(runner, kinds: kinds, takesFiles: takesFiles)
  }

  func begin() {
    mailbox.closures.add(self)
    runner.begin { [weak self] in self?.run() }
    runner.trigger()
  }

  private var hasStopped: Bool { isStopped.load(ordering: .sequentiallyConsistent) }

  private func run() {
    while true {
      // Set before `isStopped` is read: the stopping thread sees the work, or this thread the stop.
      enter()
      let step = mailbox.step(for: number, until: { hasStopped })
      switch step {
      case .idle, .ended: break
      case .work(.message(let message)): handle(message)
      case .work(.file(let file)): handle(BatchCursor(file))
      }
      leave()
      switch step {
      case .idle(let due):
        if let due { runner.trigger(at: Instant(nanoseconds: due)) }
        return
      case .ended: return
      case .work: break
      }
    }
  }

  private func enter() { worker.store(Thread.currentNumber, ordering: .sequentiallyConsistent) }

  private func leave() {
    if hasStopped { afterwards.withLock { $0.take() }?.perform() }
    worker.store(0, ordering: .sequentiallyConsistent)
    if hasStopped { departures.signal { _ in } }
  }

  private func handle(_ message: Message) {
    guard !hasStopped else { return message.requeue() }
    guard let queue else { return call(message) }
    queued.withLock { $0.message = message }
    leave()
    queue.sync {
      // If the receiver was stopped in the meantime, the stopping thread has requeued the message.
      let message = queued.withLock { queued in
        if queued.message != nil { enter() }
        return queued.message.take()
      }
      guard let message else { return }
      if hasStopped { message.requeue() } else { call(message) }
      leave()
    }
  }

  private func call(_ message: Message) {
    if give(message, handler), acknowledgement == .automatic { message.acknowledgeForSure() }
  }

  /// Without a queue, all messages of a file are one call for a thread that waits for its end.
  private func handle(_ hand: BatchCursor) {
    guard queue == nil else {
      queued.withLock { $0.hand = hand }
      while !hasStopped, let message = hand.next() {
        handle(message)
        enter()
      }
      return queued.withLock { $0.hand = nil }
    }
    let handler = handler  // A copy: the property would be retained for each message.
    var next = hasStopped ? nil : hand.next()
    while let message = next.take() {
      let isDone = give(message, handler) && acknowledgement == .automatic
      if isDone, !hasStopped {
        next = hand.next(after: message)
      } else {
        if isDone { message.acknowledgeForSure() }
        next = hasStopped ? nil : hand.next()
      }
    }
  }

  /// Calls the closure; returns whether the message was handled.
  ///
  /// The acknowledgement of a handled message is tried until it is written: a failed write must not
  /// cause a redelivery.
  @inline(__always)
  private func give(_ message: Message, _ handler: (Message) throws -> Void) -> Bool {
    do {
      try handler(message)
      return true
    } catch {
      // The handler of a member that leaves ends in order: no attempt is counted.
      if hasStopped, !Mutants.has(.failCancelled) {
        message.interrupt()
      } else {
        mailbox.reject(message, "\(error)")
      }
      return false
    }
  }

  /// Stops the receiver; waits for the call in progress, unless called from inside that call.
  ///
  /// Claimed messages not given out yet are requeued by then: the next receiver gets them first.
  func stop() {
    guard mailbox.container.storage.isOwned else { return }
    isStopped.store(true, ordering: .sequentiallyConsistent)
    mailbox.remove(number)
    mailbox.closures.remove(self)
    runner.end()
    repeat {
      _ = departures.wait(until: nil) { _ in isOutside ? true : nil }
      // The queue may never run the block, or may be the queue of this call.
      let queued = queued.withLock { exchange(&$0, with: QueueEntry()) }
      queued.message?.requeue()
      queued.hand?.release()
    } while !isOutside
  }

  /// Whether no other thread is working.
  private var isOutside: Bool {
    let worker = worker.load(ordering: .sequentiallyConsistent)
    return worker == 0 || worker == Thread.currentNumber
  }

  /// Stops the receiver.
  ///
  /// Returns whether the caller is inside the closure; the body is then called after the closure
  /// has returned.
  func stop(then body: @escaping @Sendable () -> Void) -> Bool {
    stop()
    guard worker.load(ordering: .sequentiallyConsistent) == Thread.currentNumber else {
      return false
    }
    afterwards.withLock { $0 = Action(body) }
    return true
  }
}

/// The receivers of a mailbox that have a closure.
final class Closures: Sendable {
  private struct Weak {
    weak var receiver: Receiver?
  }

  private let all = Monitor<[ObjectIdentifier: Weak]>([:])

  func add(_ receiver: Receiver) {
    all.withLock { $0[ObjectIdentifier(receiver)] = Weak(receiver: receiver) }
  }

  func remove(_ receiver: Receiver) {
    all.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(receiver)) }
  }

  /// Stops all receivers, and waits for the calls in progress, so that their messages are
  /// acknowledged; calls the body afterwards.
  ///
  /// No caller inside such a closure can wait for its end: the body is called after the closure's
  /// return.
  func end(then body: @escaping @Sendable () -> Void) {
    let receivers = all.withLock { $0.values.compactMap(\.receiver) }
    if !receivers.map({ $0.stop(then: body) }).contains(true) { body() }
  }
}

extension Mailbox {
  /// Throws if the member has left.
  func checkJoined() throws(WormholeError) {
    if isClosed { throw WormholeError.hasLeft(home, "receive messages of") }
  }

  /// The next step of a receiver.
  enum Step {
    case work(ReceiverWork)
    /// Nothing, until the worker is triggered or this moment arrives.
    case idle(until: Int64?)
    /// The member has left.
    case ended
  }

  /// Fails a message whose handler has thrown, or whose loop was left.
  func reject(_ message: Message, _ reason: String) {
    // The handler's own call of `acknowledge()` may have thrown.
    guard !message.hasEnded else { return }
    reporting(to: message.source.messageClaim.log) { () throws(WormholeError) in
      try message.fail(reason)
    }
  }
}

/// Work for a receiver.
enum ReceiverWork {
  case file(OpenedMessage)
  case message(Message)
}
