public import WormholeContainerStorage
internal import WormholeSyscalls

/// Changes as an asynchronous sequence of the newest values.
///
/// A slow iteration receives the newest value of each channel, and skips earlier ones; no backlog
/// grows, and the last value is never missed. Each iteration has its own watch, from the time
/// when the sequence was made. For notices, which are not stored, the watch begins with the
/// iteration. The iteration ends when the task is cancelled, and is released with its iterator.
///
/// If a value cannot be read, `next()` of the iterator throws the error and then continues with
/// the next change. If the container was removed or moved away, `next()` throws too, and the
/// iteration has ended. Files are read on a thread of the module, never on the task's thread.
public struct Updates<Element: Sendable>: AsyncSequence, Sendable {
  /// The error that iterating throws.
  public typealias Failure = WormholeError

  typealias Source = (listener: StopOnRelease<Listener>, interpret: Interpreter<Element>)

  let begin: @Sendable () throws(WormholeError) -> Source

  /// Begins to watch.
  public func makeAsyncIterator() -> Iterator {
    Iterator(Result { () throws(WormholeError) in try begin() })
  }

  /// One watch, for one task.
  public struct Iterator: AsyncIteratorProtocol {
    /// Nil once the error of a failed start was thrown.
    private var source: Result<Source, WormholeError>?

    fileprivate init(_ source: Result<Source, WormholeError>) { self.source = source }

    /// Returns the next change; nil when the task is cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(WormholeError) -> Element? {
      guard let source = try self.source.getFailingOnce() else { return nil }
      let listener = source.listener.one
      guard listener.owner.isCurrent else {
        throw WormholeError(.ownerDied, "watch for", "changes")
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
