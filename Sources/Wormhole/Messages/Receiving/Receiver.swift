public import Dispatch
public import SharedContainer
internal import Synchronization
internal import Syscalls

extension Wormhole {
  /// When a message counts as handled.
  @nonexhaustive
  public enum Acknowledgement: Sendable {
    /// When the closure has returned without throwing, or the loop asks for the next message.
    case automatic
    /// When ``Wormhole/Message/acknowledge()`` is called.
    case explicit
  }
}

extension Wormhole.Member {
  /// Gives a closure the messages that this member is sent, one after the other.
  ///
  /// The first that were sent come first. If the closure throws, the message has failed: it comes
  /// again later, and after ``Wormhole/MailOptions/attempts`` goes to the dead letters. Where
  /// several closures want a message, they take turns. It goes on until it is stopped or the member
  /// leaves, whoever keeps what this returns.
  ///
  /// - Parameters:
  ///   - kinds: which messages it wants, by what the sender called them; nil for all. Messages that
  ///     no closure wants wait.
  ///   - acknowledgement: whether returning acknowledges.
  ///   - queue: where the closure is called; by default on a thread that nobody else waits for.
  ///   - handler: gets each message.
  @discardableResult
  public func receive(
    kinds: Set<String>? = nil, acknowledging acknowledgement: Wormhole.Acknowledgement = .automatic,
    on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Wormhole.Message) throws -> Void
  ) throws(WormholeError) -> Wormhole.Subscription {
    try receive(
      kinds: kinds, takingFiles: true, acknowledging: acknowledgement, on: queue, handler)
  }

  /// As ``receive(kinds:acknowledging:on:_:)``; where it takes no files, messages that one comes
  /// with stay where they are, unclaimed, and the log is told.
  package func receive(
    kinds: Set<String>?, takingFiles takesFiles: Bool,
    acknowledging acknowledgement: Wormhole.Acknowledgement, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Wormhole.Message) throws -> Void
  ) throws(WormholeError) -> Wormhole.Subscription {
    let receiver = try Receiver(
      mailbox, kinds, takesFiles: takesFiles, acknowledgement, on: queue, handler)
    let subscription = live.subscribe(receiver)
    receiver.begin()
    return subscription
  }

  /// Gives a closure the values that this member is sent under the name of their type.
  ///
  /// As ``receive(kinds:acknowledging:on:_:)``; a value that does not decode is a failed attempt.
  @discardableResult
  public func receive<Value: Decodable & Sendable>(
    _ type: Value.Type, kind: String? = nil, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Value, Wormhole.Message) throws -> Void
  ) throws(WormholeError) -> Wormhole.Subscription {
    try receive(kinds: [kind ?? MessageKind.name(of: type)], on: queue) { message in
      try handler(message.value(as: type), message)
    }
  }
}

/// One receiver with a closure.
final class Receiver: Lasting {
  private let mailbox: Mailbox
  private let number: Int
  private let runner: CoalescingWorker
  private let acknowledgement: Wormhole.Acknowledgement
  private let queue: DispatchQueue?
  private let handler: @Sendable (Message) throws -> Void
  private let isStopped = Atomic<Bool>(false)
  /// The thread that claims a message or is inside the closure with one; 0 for none.
  ///
  /// A gate would cost as much as a message.
  private let worker = Atomic<UInt>(0)
  private let departures = Monitor(0)
  private let queued = Monitor(Queued())

  /// What is claimed and waits for the queue.
  private struct Queued {
    var message: Message?
    /// The file of which more is to come.
    var hand: Hand?
  }

  /// What is to be done once the call under way has returned.
  private let afterwards = Monitor<Action?>(nil)

  init(
    _ mailbox: Mailbox, _ kinds: Set<String>?, takesFiles: Bool = true,
    _ acknowledgement: Wormhole.Acknowledgement, on queue: DispatchQueue?,
    _ handler: @escaping @Sendable (Message) throws -> Void
  ) throws(WormholeError) {
    self.mailbox = mailbox
    self.acknowledgement = acknowledgement
    self.queue = queue
    self.handler = handler
    runner = CoalescingWorker(staysOnQueue: queue != nil, mailbox.hole.options.time)
    number = try mailbox.add(runner, kinds: kinds, takesFiles: takesFiles)
  }

  func begin() {
    mailbox.closures.add(self)
    runner.begin { [weak self] in self?.run() }
  }

  private var hasStopped: Bool { isStopped.load(ordering: .sequentiallyConsistent) }

  private func run() -> Int64? {
    while true {
      // Told before it is asked, so that whoever stops it sees the work or the work sees the stop.
      enter()
      let step = mailbox.step(for: number, until: { hasStopped })
      switch step {
      case .idle, .ended: break
      case .work(.message(let message)): handle(message)
      case .work(.file(let file)): handle(Hand(file))
      }
      leave()
      switch step {
      case .idle(let due): return due
      case .ended: return nil
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
    guard !hasStopped else { return message.putBack() }
    guard let queue else { return call(message) }
    queued.withLock { $0.message = message }
    leave()
    queue.sync {
      // Whoever has stopped it meanwhile has put the message back.
      let message = queued.withLock { queued in
        if queued.message != nil { enter() }
        return queued.message.take()
      }
      guard let message else { return }
      if hasStopped { message.putBack() } else { call(message) }
      leave()
    }
  }

  private func call(_ message: Message) {
    if give(message, handler), acknowledgement == .automatic { message.acknowledgeForSure() }
  }

  /// Without a queue all messages of a file are one call, as far as anybody waits for its end.
  private func handle(_ hand: Hand) {
    guard queue == nil else {
      queued.withLock { $0.hand = hand }
      while !hasStopped, let message = hand.next() {
        handle(message)
        enter()
      }
      return queued.withLock { $0.hand = nil }
    }
    let handler = handler  // Read anew it would be retained for each message.
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

  /// Calls the closure; whether the message is handled.
  ///
  /// What is, is acknowledged for sure: it is not handled again because that could not be written
  /// down.
  @inline(__always)
  private func give(_ message: Message, _ handler: (Message) throws -> Void) -> Bool {
    do {
      try handler(message)
      return true
    } catch {
      mailbox.reject(message, error)
      return false
    }
  }

  /// Ends it; waits for the call under way, unless that is where it is called.
  ///
  /// What is claimed and was not given yet is put back by then: the next receiver gets it first.
  func stop() {
    guard mailbox.hole.container.isOwned else { return }
    isStopped.store(true, ordering: .sequentiallyConsistent)
    mailbox.remove(number)
    mailbox.closures.remove(self)
    runner.end()
    repeat {
      _ = departures.wait(until: nil) { _ in isOutside ? true : nil }
      // Its queue may never get to it, or be where this is called.
      let queued = queued.withLock { queued in
        defer { queued = Queued() }
        return queued
      }
      queued.message?.putBack()
      queued.hand?.release()
    } while !isOutside
  }

  /// Whether no other thread is at work.
  private var isOutside: Bool {
    let worker = worker.load(ordering: .sequentiallyConsistent)
    return worker == 0 || worker == Thread.currentNumber
  }

  /// The same; whether it was called inside the closure, so that the body is left to be called when
  /// that has returned.
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

  /// Ends them all, and waits for the calls under way, so that what they handle is acknowledged;
  /// then calls the body.
  ///
  /// Inside such a closure nobody can wait for it: the body is called once that has returned.
  func end(then body: @escaping @Sendable () -> Void) {
    let receivers = all.withLock { $0.values.compactMap(\.receiver) }
    if !receivers.map({ $0.stop(then: body) }).contains(true) { body() }
  }
}

extension Mailbox {
  /// Throws if the member has left.
  func checkJoined() throws(WormholeError) {
    guard isClosed else { return }
    throw WormholeError(
      .notJoined, "receive messages of", home.name, because: "it has left", hint: "join again")
  }

  /// What a receiver is given.
  enum Work {
    case file(OpenedFile)
    case message(Message)
  }

  /// What a receiver comes to next.
  enum Step {
    case work(Work)
    /// Nothing, until it is kicked or this moment has come.
    case idle(until: Int64?)
    /// The member has left.
    case ended
  }

  /// A handler has thrown.
  func reject(_ message: Message, _ error: any Error) {
    do throws(WormholeError) {
      // Its own acknowledgement may be what has failed.
      if !message.hasEnded { try message.fail("\(error)") }
    } catch {
      hole.log(.error, error, about: LogSubject(member: home.name, message: message.id))
    }
  }
}
