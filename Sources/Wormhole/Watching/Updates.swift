public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// What changes, as an asynchronous sequence of the newest.
  ///
  /// Whoever iterates slowly gets the newest of each channel and not all that came before; nothing
  /// piles up, and the last is never missed. Each iteration watches for itself, from when the
  /// sequence was made; of notices, which are kept nowhere, from when it begins. It ends when the
  /// task is cancelled, and is released with its iterator.
  ///
  /// A value that cannot be had is thrown, as by `next()` of the iterator; the iterator then goes
  /// on with the next change. That the container was removed or moved away is thrown too, and is
  /// the end. Files are read on a thread of the module's own, never on the task's
  /// thread.
  public struct Updates<Element: Sendable>: AsyncSequence, Sendable {
    /// What iterating may throw.
    public typealias Failure = WormholeError

    typealias Source = (listener: Brief<Listener>, interpret: Interpreter<Element>)

    let begin: @Sendable () throws(WormholeError) -> Source

    /// Begins to watch.
    public func makeAsyncIterator() -> Iterator {
      Iterator(Result { () throws(WormholeError) in try begin() })
    }

    /// One watch, for one task.
    public struct Iterator: AsyncIteratorProtocol {
      /// Nil once it was told that it could not begin.
      private var source: Result<Source, WormholeError>?

      fileprivate init(_ source: Result<Source, WormholeError>) { self.source = source }

      /// The next change; nil when the task is cancelled.
      public mutating func next(
        isolation actor: isolated (any Actor)?
      ) async throws(WormholeError) -> Element? {
        guard case .success(let source)? = source else {
          defer { source = nil }
          if case .failure(let error)? = source { throw error }
          return nil
        }
        let listener = source.listener.one
        guard listener.owner.isCurrent else {
          throw WormholeError(.ownerDied, "wait for", "changes")
        }
        while let finding = await listener.next() {
          var element: Element?
          try source.interpret(finding) { element = $0 }
          if let element { return element }
        }
        return nil
      }
    }
  }
}
