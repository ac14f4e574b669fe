internal import Dispatch
internal import SharedContainer
internal import Synchronization
internal import Syscalls

extension Wormhole {
  /// A named lock, which one at a time holds, of all programs that share the container: for what
  /// lies outside of it.
  ///
  /// It is the one that `wormhole lock` holds for a command. It is free as soon as its holder has
  /// ended, however that went. A holder that is stopped keeps it; whoever waits then is told who it
  /// is, or takes it over.
  ///
  /// What lies in the container needs no named lock: ``Channel`` and ``Defaults`` have their own.
  public struct Lock: Sendable {
    /// The lock's name.
    public let name: String
    private let hole: Wormhole

    init(_ name: String, _ hole: Wormhole) {
      self.name = name
      self.hole = hole
    }

    /// Waits until nobody else holds the lock, and holds it while the body runs.
    ///
    /// The body runs on the calling thread. In it everything of the container can be used, but for
    /// a second named lock, of whatever name or container: that throws
    /// ``WormholeError/Code-swift.struct/nested`` at once, as two that take two locks in different
    /// order would wait for each other. So does a named lock inside an update.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait before it throws ``WormholeError/Code-swift.struct/timedOut``;
    ///     by default what the options say.
    ///   - body: runs while the lock is held. What it throws comes through.
    /// - Throws: ``WormholeError/Code-swift.struct/superseded``, once the body has run, if others
    ///   took the lock over from this process: both may have run at once.
    public func hold<Result>(
      within timeout: Duration? = nil, _ body: () throws -> Result
    ) throws -> Result {
      try hold(within: timeout, breakAfter: nil) { _ in try body() }
    }

    /// Waits until nobody else holds the lock, or whoever does has not run for so long, and holds
    /// it while the body runs.
    ///
    /// As `hold(within:_:)`. When the other one goes on, both may run at once.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait; by default what the options say, and `breakAfter` more.
    ///   - breakAfter: how long the holder must have stood still; no shorter than the lease.
    ///   - body: gets a number that rises with each such takeover, so that what it changes can
    ///     refuse the older one.
    public func hold<Result>(
      within timeout: Duration? = nil, breakAfter: Duration?,
      _ body: (_ generation: Int) throws -> Result
    ) throws -> Result {
      let mark = try HeldLock.begin(name)
      defer { mark.end() }
      let held = try naming {
        try slot().hold(
          "hold lock", breakAfter: breakAfter, patience: patience(timeout, breakAfter),
          isOutermost: true
        ) { generation in
          HeldLock.$current.withValue(mark) { Swift.Result { try body(generation) } }
        }
      }
      let result = try held.result.get()
      if held.wasSuperseded { throw superseded }
      return result
    }

    // MARK: For tasks

    /// Waits until nobody else holds the lock, and holds it while the body runs.
    ///
    /// As the one without `await`. No thread of the pool waits; if the task is cancelled while it
    /// waits the body does not run. Tasks that the body starts count as the same, until it has
    /// ended.
    public func hold<Result>(
      within timeout: Duration? = nil, _ body: () async throws -> Result
    ) async throws -> Result {
      try await hold(within: timeout, breakAfter: nil) { (_: Int) async throws -> Result in
        try await body()
      }
    }

    /// Waits until nobody else holds the lock, or whoever does has not run for so long, and holds
    /// it while the body runs.
    ///
    /// As the one without `await`. No thread of the pool waits; if the task is cancelled while it
    /// waits the body does not run.
    public func hold<Result>(
      within timeout: Duration? = nil, breakAfter: Duration?,
      _ body: (_ generation: Int) async throws -> Result
    ) async throws -> Result {
      try WormholeError.checkQueues("hold lock", name)
      let mark = try HeldLock.begin(name)
      defer { mark.end() }
      let (slot, name) = (try slot(), name)
      let cancellation = Cancellation()
      let patience = patience(timeout, breakAfter, cancellation)
      let stay = LockStay(cancellation) { stay in
        try slot.hold("hold lock", breakAfter: breakAfter, patience: patience, isOutermost: true) {
          stay.enter($0)
        }.wasSuperseded
      }
      CallLanes.holding.add(
        ObjectIdentifier(slot), until: patience.deadline ?? .distantFuture
      ) {
        stay.run()
      } expire: {
        stay.expire()
      }
      let generation: Int
      do {
        generation = try await stay.generation(name)
      } catch {
        throw named(error)
      }
      let result: Result
      do {
        result = try await HeldLock.$current.withValue(mark) { try await body(generation) }
      } catch {
        _ = try? await stay.leave()
        throw error
      }
      let wasSuperseded: Bool
      do { wasSuperseded = try await stay.leave() } catch { throw named(error) }
      if wasSuperseded { throw superseded }
      return result
    }

    /// Waits until nobody else holds the lock, and holds it while the body runs, which does not
    /// wait for other tasks.
    ///
    /// As the one whose body does. The body runs where the task does.
    public func hold<Result>(
      within timeout: Duration? = nil, _ body: () throws -> Result
    ) async throws -> Result {
      try await hold(within: timeout, breakAfter: nil) { (_: Int) async throws -> Result in
        try body()
      }
    }

    /// Waits until nobody else holds the lock, or whoever does has not run for so long, and holds
    /// it while the body runs, which does not wait for other tasks.
    ///
    /// As the one whose body does. The body runs where the task does.
    public func hold<Result>(
      within timeout: Duration? = nil, breakAfter: Duration?,
      _ body: (_ generation: Int) throws -> Result
    ) async throws -> Result {
      try await hold(within: timeout, breakAfter: breakAfter) {
        (generation: Int) async throws -> Result in
        try body(generation)
      }
    }

    // MARK: Its slot

    private func slot() throws(WormholeError) -> Slot {
      try hole.container.slot(.system, "lock." + name)
    }

    /// Whoever does not say how long, but asks to pass who stands still, waits for that to happen.
    private func patience(
      _ timeout: Duration?, _ breakAfter: Duration?, _ cancellation: Cancellation? = nil
    ) -> Patience {
      Patience(
        until: .now + (timeout ?? hole.options.timeout + max(breakAfter ?? .zero, .zero)),
        cancellation: cancellation ?? OffPool.cancellation)
    }

    private var superseded: WormholeError {
      WormholeError(
        .superseded, "hold lock", name,
        because: "others took it over while it was held",
        hint: "see whether both have run at once")
    }

    private func naming<Success>(_ body: () throws -> Success) throws -> Success {
      do { return try body() } catch { throw named(error) }
    }

    /// Under the name that the caller knows.
    private func named(_ error: any Error) -> any Error {
      guard var error = error as? WormholeError else { return error }
      error.subject = name
      return error
    }
  }

  /// The lock of that name.
  ///
  /// Nothing is made or looked at before it is used; a name that cannot be used is an error then.
  public func lock(_ name: String) -> Lock { Lock(name, self) }
}

/// The named lock that a task, or a thread, holds or waits for.
final class HeldLock: Sendable {
  @TaskLocal static var current: HeldLock?

  private let name: String
  /// Tasks that were started meanwhile may go on for longer.
  private let isOver = Atomic<Bool>(false)

  private init(_ name: String) { self.name = name }

  static func begin(_ name: String) throws(WormholeError) -> HeldLock {
    guard let outer = current, !outer.isOver.load(ordering: .acquiring) else {
      return HeldLock(name)
    }
    throw WormholeError(
      .nested, "hold lock", name, because: "it was called while lock '\(outer.name)' is held",
      hint: "return from that one first, or use one lock for both")
  }

  func end() { isOver.store(true, ordering: .releasing) }
}
