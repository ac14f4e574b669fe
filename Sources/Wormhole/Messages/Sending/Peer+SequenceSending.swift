internal import Dispatch
internal import SharedContainer
internal import Syscalls

extension Wormhole.Peer {
  /// Sends what an asynchronous sequence yields, in order; what comes while a file is being written
  /// goes into the next one together.
  ///
  /// So a sequence that is faster than the disk is sent in batches, and one that is slower message
  /// by message. It returns once the last is sent. After the first failure nothing more is sent: if
  /// it throws, what `sent` was told last is how many messages were sent, the first of all. A task
  /// that is cancelled waits for no room: that is a failure.
  ///
  /// - Parameters:
  ///   - elements: what is sent, one message each.
  ///   - options: how it is sent.
  ///   - sent: is called with how many messages have been sent so far, whenever there are more.
  /// - Returns: how many messages were sent.
  @discardableResult
  public func send<Elements: AsyncSequence & Sendable>(
    each elements: Elements, _ options: Wormhole.SendOptions = Wormhole.SendOptions(),
    sent: (@Sendable (Int) -> Void)? = nil
  ) async throws -> Int where Elements.Element: Encodable & Sendable {
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

/// What waits to be sent while a file is being written.
private final class SendBuffer<Element: Encodable & Sendable>: Sendable {
  private struct State {
    var waiting: [Element] = []
    var isWriting = false
    var count = 0
    var failure: WormholeError?
    /// The task that waits for room, or for the end.
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Monitor(State())
  private let queue = DispatchQueue(label: "wormhole.send")
  private let peer: Wormhole.Peer
  private let options: Wormhole.SendOptions
  private let sent: (@Sendable (Int) -> Void)?
  private let cancellation = Cancellation()
  private var limit: Int { BatchProgress.slotCount * 4 }

  init(
    _ peer: Wormhole.Peer, _ options: Wormhole.SendOptions, _ sent: (@Sendable (Int) -> Void)?
  ) {
    self.peer = peer
    self.options = options
    self.sent = sent
  }

  /// Whoever waits for room waits no longer.
  func cancel() { cancellation.cancel() }

  /// Waits while the buffer is full; false once sending has failed.
  func append(_ element: Element) async -> Bool {
    let begins = state.withLock { state in
      guard state.failure == nil else { return false }
      state.waiting.append(element)
      defer { state.isWriting = true }
      return !state.isWriting
    }
    if begins { queue.async { self.write() } }
    await wait { $0.waiting.count < self.limit }
    return state.withLock { $0.failure == nil }
  }

  /// Waits until all is sent; how many messages that were.
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
      var placed: [Wormhole.Sent] = []
      let terms = OffPool.Terms(cancellation: cancellation, deadline: nil)
      let failure = OffPool.$terms.withValue(terms) { () -> WormholeError? in
        do throws(WormholeError) {
          try peer.sending(Element.self, options).send(contentsOf: part[...], &placed)
          return nil
        } catch {
          return error
        }
      }
      // Also of a part that failed some may have been sent.
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
