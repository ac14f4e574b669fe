public import SharedContainer
internal import Synchronization
internal import Syscalls

extension Wormhole.Member {
  /// The messages that this member is sent, each to be acknowledged once it is handled.
  public var messages: Wormhole.Messages { messages(acknowledging: .explicit) }

  /// The messages that this member is sent, one after the other.
  ///
  /// - Parameters:
  ///   - kinds: which messages are wanted, by what the sender called them; nil for all.
  ///   - acknowledgement: whether asking for the next message acknowledges the last.
  public func messages(
    kinds: Set<String>? = nil, acknowledging acknowledgement: Wormhole.Acknowledgement
  ) -> Wormhole.Messages {
    Wormhole.Messages(mailbox: mailbox, kinds: kinds, acknowledgement: acknowledgement)
  }
}

extension Wormhole {
  /// What a member is sent, as an asynchronous sequence.
  ///
  /// A message is claimed when the loop asks for it, so nothing is taken that nobody handles.
  /// Several loops take turns. It ends when the task is cancelled, or when the member leaves; of
  /// one that has left it throws ``WormholeError/Code-swift.struct/notJoined``.
  public struct Messages: AsyncSequence, Sendable {
    /// What iterating may throw.
    public typealias Failure = WormholeError

    let mailbox: Mailbox
    let kinds: Set<String>?
    let acknowledgement: Acknowledgement

    /// Begins to receive.
    public func makeAsyncIterator() -> Iterator {
      Iterator(
        Result { () throws(WormholeError) in Brief(try Pump(mailbox, kinds)) }, acknowledgement)
    }

    /// One receiver, for one task.
    public struct Iterator: AsyncIteratorProtocol {
      /// Nil once it was told that it could not begin.
      private var pump: Result<Brief<Pump>, WormholeError>?
      private let acknowledgement: Acknowledgement
      private var hand: Hand?
      private var last: Message?

      fileprivate init(
        _ pump: Result<Brief<Pump>, WormholeError>, _ acknowledgement: Acknowledgement
      ) {
        self.pump = pump
        self.acknowledgement = acknowledgement
      }

      /// The next message; nil when the task is cancelled.
      public mutating func next(
        isolation actor: isolated (any Actor)?
      ) async throws(WormholeError) -> Message? {
        if case .success(let pump)? = pump { try pump.one.checkOwner() }
        let done = last.take()
        if acknowledgement == .automatic, let done, !done.hasEnded { try done.acknowledge() }
        let message = try await take()
        if acknowledgement == .automatic { last = message }
        return message
      }

      private mutating func take() async throws(WormholeError) -> Message? {
        guard case .success(let pump)? = pump else {
          defer { pump = nil }
          if case .failure(let error)? = pump { throw error }
          return nil
        }
        while true {
          if Task.isCancelled { return nil }
          if let message = hand?.next() { return message }
          hand = nil
          switch await pump.one.next() {
          case .file(let file): hand = Hand(file)
          case .message(let message): return message
          case nil: return nil
          }
        }
      }
    }
  }
}

/// A receiver whose messages are waited for: it claims one file whenever it is asked.
final class Pump: Lasting {
  private struct State {
    var asking: CheckedContinuation<Void, Never>?
    /// What the one that asked is to take, under the lock: the thread sanitizer does not see what
    /// goes from thread to thread with a continuation.
    var handed: Mailbox.Work?
    var isStopped = false
  }

  let mailbox: Mailbox
  private let runner: CoalescingWorker
  private let number: Int
  private let state = Monitor(State())

  init(_ mailbox: Mailbox, _ kinds: Set<String>?) throws(WormholeError) {
    self.mailbox = mailbox
    runner = CoalescingWorker(staysOnQueue: false, mailbox.hole.options.time)
    number = try mailbox.add(runner, kinds: kinds)
    // The runner keeps it until it is stopped.
    runner.begin(isAsked: { self.state.withLock { $0.asking != nil } }) { self.run() }
  }

  /// Throws in a copy of the process, to which nothing comes.
  func checkOwner() throws(WormholeError) {
    try mailbox.hole.container.checkOwner("receive as", mailbox.home.name)
  }

  /// The next file; nil once the task is cancelled.
  func next() async -> Mailbox.Work? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { ask($0) }
    } onCancel: {
      stop()
    }
    return state.withLock { $0.handed.take() }
  }

  private func ask(_ continuation: CheckedContinuation<Void, Never>) {
    let isLate = state.withLock { state in
      if !state.isStopped { state.asking = continuation }
      return state.isStopped
    }
    if isLate { continuation.resume() } else { runner.kick() }
  }

  private func run() -> Int64? {
    while state.withLock({ !$0.isStopped && $0.asking != nil }) {
      switch mailbox.step(for: number, until: { state.withLock { $0.isStopped } }) {
      case .idle(let due):
        return due
      case .ended:
        stop()
      case .work(let work):
        let asking = state.withLock { state in
          if state.asking != nil { state.handed = work }
          return state.asking.take()
        }
        if let asking {
          asking.resume()
        } else {
          // Claimed for somebody who no longer asks.
          switch work {
          case .file(let file): file.delivery.release()
          case .message(let message): message.putBack()
          }
        }
      }
    }
    return nil
  }

  /// Ends it: whoever waits is told so.
  func stop() {
    guard mailbox.hole.container.isOwned else { return }
    let asking = state.withLock { state in
      state.isStopped = true
      return state.asking.take()
    }
    mailbox.remove(number)
    runner.end()
    asking?.resume()
  }
}
