public import SharedContainer

extension Wormhole {
  /// What changes, as an asynchronous sequence of the newest.
  ///
  /// Whoever iterates slowly gets the newest of each channel and not all that came before; nothing
  /// piles up, and the last is never missed. Each iteration watches for itself, from when the
  /// sequence was made. It ends when the task is cancelled, and is released with its iterator.
  ///
  /// A value that cannot be had is thrown, as by `next()` of the iterator; the iterator then goes
  /// on with the next change. Files are read on a thread of the module's own, never on the task's
  /// thread.
  public struct Updates<Element: Sendable>: AsyncSequence, Sendable {
    /// What iterating may throw.
    public typealias Failure = WormholeError

    let begin: @Sendable () throws(WormholeError) -> Subscription<Element>

    /// Begins to watch.
    public func makeAsyncIterator() -> Iterator {
      Iterator(subscription: Result { () throws(WormholeError) in try begin() })
    }

    /// One watch, for one task.
    public struct Iterator: AsyncIteratorProtocol {
      fileprivate var subscription: Result<Subscription<Element>, WormholeError>
      private var hasFailed = false

      fileprivate init(subscription: Result<Subscription<Element>, WormholeError>) {
        self.subscription = subscription
      }

      /// The next change; nil when the task is cancelled.
      public mutating func next(
        isolation actor: isolated (any Actor)?
      ) async throws(WormholeError) -> Element? {
        switch subscription {
        case .success(let subscription):
          return try await subscription.next()
        case .failure(let error):
          // It could not even begin, so there is nothing to go on with.
          if hasFailed { return nil }
          hasFailed = true
          throw error
        }
      }
    }
  }
}

/// A listener whose findings are waited for, as long as somebody keeps this.
final class Subscription<Element: Sendable>: Sendable {
  private let listener: Listener
  private let interpret: Interpreter<Element>

  init(_ listener: Listener, _ interpret: @escaping Interpreter<Element>) {
    self.listener = listener
    self.interpret = interpret
  }

  deinit { listener.stop() }

  nonisolated(nonsending) func next() async throws(WormholeError) -> Element? {
    while let finding = await listener.next() {
      var element: Element?
      try interpret(finding) { element = $0 }
      if let element { return element }
    }
    return nil
  }
}
