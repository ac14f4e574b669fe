internal import WormholeContainerStorage
internal import WormholeSyscalls

extension Peer {
  /// Sends the elements of an asynchronous sequence, in order; elements that arrive while a file is
  /// being written share the next file.
  ///
  /// A sequence faster than the disk is therefore sent in batches, and a slower sequence message by
  /// message. The call returns after the last message is sent. After the first failure, no further
  /// message is sent. If the call throws, the number last passed to `sent` states how many messages
  /// were sent, counted from the first element. A cancelled task does not wait for free space: a
  /// full queue is then a failure.
  ///
  /// - Parameters:
  ///   - elements: the values to send, one message each.
  ///   - options: the options of each message.
  ///   - sent: called with the number of messages sent so far, whenever the number grows.
  /// - Returns: how many messages were sent.
  @discardableResult
  public func send<Elements: AsyncSequence & Sendable>(
    each elements: Elements, _ options: SendOptions = SendOptions(),
    sent: (@Sendable (Int) -> Void)? = nil
  ) async throws -> Int where Elements.Element: Encodable & Sendable {
    try TaskPool.start("send message to", name)
    let buffer = SendBuffer<Elements.Element>(self, options, sent)
    return try await withTaskCancellationHandler {
      do {
        for try await element in elements {
          guard await buffer.append(element) else { break }
        }
      } catch {
        _ = try? await buffer.finish()
        throw error
      }
      return try await buffer.finish()
    } onCancel: {
      buffer.cancel()
    }
  }
}

/// Elements that wait to be sent while a file is being written.
private final class SendBuffer<Element: Encodable & Sendable>: Sendable {
  private struct State {
    var waiting: [Element] = []
    var isWriting = false
    var count = 0
    var failure: WormholeError?
    /// The task that waits for space in the buffer, or for the end.
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Monitor(State())
  private let peer: Peer
  private let options: SendOptions
  private let sent: (@Sendable (Int) -> Void)?
  private let cancellation = CancellationFlag()
  private var limit: Int { BatchProgress.slotCount * 4 }

  init(
    _ peer: Peer, _ options: SendOptions, _ sent: (@Sendable (Int) -> Void)?
  ) {
    self.peer = peer
    self.options = options
    self.sent = sent
  }

  /// Ends a wait for free space in the inbox.
  func cancel() { cancellation.cancel() }

  /// Adds an element, and waits while the buffer is full; returns false once sending has failed.
  func append(_ element: Element) async -> Bool {
    let begins = state.withLock { state in
      guard state.failure == nil else { return false }
      state.waiting.append(element)
      return !exchange(&state.isWriting, with: true)
    }
    if begins { CallThreads.background.add { self.write() } }
    await wait { $0.waiting.count < self.limit }
    return state.withLock { $0.failure == nil }
  }

  /// Waits until all elements are sent; returns how many messages were sent.
  func finish() async throws(WormholeError) -> Int {
    await wait { !$0.isWriting }
    let (count, failure) = state.withLock { ($0.count, $0.failure) }
    if let failure { throw failure }
    return count
  }

  private func wait(_ condition: @escaping @Sendable (State) -> Bool) async {
    while !state.withLock({ condition($0) }) {
      await withCheckedContinuation { continuation in
        let isMet = state.withLock { state in
          if condition(state) { return true }
          state.waiter = continuation
          return false
        }
        if isMet { continuation.resume() }
      }
    }
  }

  private func write() {
    while true {
      let (part, waiter) = state.withLock { state in
        let part = Array(state.waiting.prefix(BatchProgress.slotCount))
        state.waiting.removeFirst(part.count)
        if part.isEmpty { state.isWriting = false }
        return (part, state.waiter.take())
      }
      waiter?.resume()
      guard !part.isEmpty else { return }
      var placed: [Sent] = []
      let terms = CallLimits(cancellation: cancellation, deadline: nil)
      let failure = OffPool.$terms.withValue(terms) { () -> WormholeError? in
        do throws(WormholeError) {
          try peer.sending(Element.self, options).send(contentsOf: part[...], &placed)
          return nil
        } catch {
          return error
        }
      }
      // Some messages of a failed part may have been sent.
      let number = placed.reduce(0) { $0 + $1.count }
      let count = state.withLock { state in
        state.count += number
        return state.count
      }
      if number > 0 { sent?(count) }
      guard let failure else { continue }
      let last = state.withLock { state in
        state.failure = failure
        state.waiting = []
        state.isWriting = false
        return state.waiter.take()
      }
      last?.resume()
      return
    }
  }
}
