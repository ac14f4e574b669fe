public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// What changes, as an asynchronous sequence of the newest.
  ///
  /// Whoever iterates slowly gets the newest of each channel and not all that came before; nothing
  /// piles up, and the last is never missed. Each iteration watches for itself, from when the
  /// sequence was made. It ends when the task is cancelled, and is released with its iterator.
  ///
  /// A value that cannot be had is thrown, as by `next()` of the iterator; the iterator then goes
  /// on with the next change. That the container was removed or moved away is thrown too, and is
  /// the end. Files are read on a thread of the module's own, never on the task's
  /// thread.
  public struct Updates<Element: Sendable>: AsyncSequence, Sendable {
    /// What iterating may throw.
    public typealias Failure = WormholeError

    let begin: @Sendable () throws(WormholeError) -> UpdateSource<Element>

    /// Begins to watch.
    public func makeAsyncIterator() -> Iterator {
      Iterator(source: Result { () throws(WormholeError) in try begin() })
    }

    /// One watch, for one task.
    public struct Iterator: AsyncIteratorProtocol {
      fileprivate var source: Result<UpdateSource<Element>, WormholeError>
      private var hasFailed = false

      fileprivate init(source: Result<UpdateSource<Element>, WormholeError>) {
        self.source = source
      }

      /// The next change; nil when the task is cancelled.
      public mutating func next(
        isolation actor: isolated (any Actor)?
      ) async throws(WormholeError) -> Element? {
        switch source {
        case .success(let source):
          return try await source.next()
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
final class UpdateSource<Element: Sendable>: Sendable {
  private let listener: Listener
  private let interpret: Interpreter<Element>

  init(_ listener: Listener, _ interpret: @escaping Interpreter<Element>) {
    self.listener = listener
    self.interpret = interpret
  }

  deinit { listener.stop() }

  nonisolated(nonsending) func next() async throws(WormholeError) -> Element? {
    guard listener.owner.isCurrent else {
      throw WormholeError(.ownerDied, "wait for", "changes")
    }
    while let finding = await listener.next() {
      var element: Element?
      try interpret(finding) { element = $0 }
      if let element { return element }
    }
    return nil
  }
}
