public import Dispatch
public import SharedContainer
internal import Synchronization
internal import Syscalls

extension Wormhole {
  /// A closure that messages are given to; ends when it is stopped, or when nobody keeps it.
  public final class Receiving: Sendable {
    let receiver: Receiver

    init(_ receiver: Receiver) { self.receiver = receiver }

    deinit { receiver.stop() }

    /// Takes no more messages; once this has returned, the closure is not called again.
    ///
    /// A call that is under way on another thread is waited for. The closure itself may call it.
    /// What is in hand and not acknowledged stays so. A second time it does nothing.
    public func stop() { receiver.stop() }
  }

  /// When a message counts as handled.
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
  /// several closures want a message, they take turns.
  ///
  /// - Parameters:
  ///   - kinds: which messages it wants, by what the sender called them; nil for all. Messages that
  ///     no closure wants wait.
  ///   - acknowledgement: whether returning acknowledges.
  ///   - queue: where the closure is called; by default on a thread that nobody else waits for.
  ///   - handler: gets each message.
  public func receive(
    kinds: Set<String>? = nil, acknowledging acknowledgement: Wormhole.Acknowledgement = .automatic,
    on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Wormhole.Message) throws -> Void
  ) throws(WormholeError) -> Wormhole.Receiving {
    let receiver = try Receiver(mailbox, kinds, acknowledgement, on: queue, handler)
    receiver.begin()
    return Wormhole.Receiving(receiver)
  }

  /// Gives a closure the values that this member is sent under the name of their type.
  ///
  /// As ``receive(kinds:acknowledging:on:_:)``; a value that does not decode is a failed attempt.
  public func receive<Value: Decodable & Sendable>(
    _ type: Value.Type, kind: String? = nil, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Value, Wormhole.Message) throws -> Void
  ) throws(WormholeError) -> Wormhole.Receiving {
    try receive(kinds: [kind ?? MessageKind.name(of: type)], on: queue) { message in
      try handler(message.value(as: type), message)
    }
  }
}

/// One receiver with a closure.
final class Receiver: Sendable {
  private let mailbox: Mailbox
  private let number: Int
  private let runner: Runner
  private let acknowledgement: Wormhole.Acknowledgement
  private let queue: DispatchQueue?
  private let handler: @Sendable (Message) throws -> Void
  private let isStopped = Atomic<Bool>(false)
  /// The thread that is inside the closure; 0 for none.
  ///
  /// A gate would cost as much as a message.
  private let caller = Atomic<UInt>(0)
  private let departures = Monitor(0)

  init(
    _ mailbox: Mailbox, _ kinds: Set<String>?, _ acknowledgement: Wormhole.Acknowledgement,
    on queue: DispatchQueue?, _ handler: @escaping @Sendable (Message) throws -> Void
  ) throws(WormholeError) {
    self.mailbox = mailbox
    self.acknowledgement = acknowledgement
    self.queue = queue
    self.handler = handler
    runner = Runner(staysOnQueue: queue != nil, mailbox.hole.options.time)
    number = try mailbox.add(runner, kinds: kinds)
  }

  func begin() {
    runner.begin { [weak self] in self?.run() }
  }

  private var hasStopped: Bool { isStopped.load(ordering: .sequentiallyConsistent) }

  private func run() -> Int64? {
    while true {
      switch mailbox.step(for: number, until: { hasStopped }) {
      case .idle(let due): return due
      case .ended: return nil
      case .work(.message(let message)): handle(message)
      case .work(.file(let delivery)): handle(Hand(delivery))
      }
    }
  }

  private func handle(_ message: Message) {
    onQueue {
      if hasStopped { return message.putBack() }
      if give(message, handler), acknowledgement == .automatic { message.acknowledgeForSure() }
    }
  }

  /// Without a queue all messages of a file are one call, as far as anybody waits for its end.
  private func handle(_ hand: Hand) {
    guard queue == nil else {
      while !hasStopped, let message = hand.next() { handle(message) }
      return
    }
    let handler = handler  // Read anew it would be retained for each message.
    call {
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
  }

  private func onQueue(_ body: () -> Void) {
    if let queue { queue.sync { call(body) } } else { call(body) }
  }

  private func call(_ body: () -> Void) {
    // Told before it is asked, so that whoever stops it sees the call or the call sees the stop.
    caller.store(Thread.currentNumber, ordering: .sequentiallyConsistent)
    body()
    caller.store(0, ordering: .sequentiallyConsistent)
    if hasStopped { departures.signal { _ in } }
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
  func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    mailbox.remove(number)
    runner.end()
    let here = Thread.currentNumber
    _ = departures.wait(until: nil) { _ -> Bool? in
      let caller = self.caller.load(ordering: .sequentiallyConsistent)
      return caller == 0 || caller == here ? true : nil
    }
  }
}

extension Mailbox {
  /// What a receiver is given.
  enum Work {
    case file(Delivery)
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
      hole.log(.error, "\(error)")
    }
  }
}
