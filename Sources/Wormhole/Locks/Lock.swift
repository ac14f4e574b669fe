internal import Synchronization
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A named lock with one holder at a time, among all programs that share the container: for
/// resources outside the container.
///
/// `wormhole lock` holds the same lock for a command. The lock is free as soon as its holder has
/// ended in any way. A suspended holder keeps the lock: its waiters learn which process the
/// holder is, or take the lock over.
///
/// Data in the container needs no named lock: ``Channel`` and ``Defaults`` have locks of their
/// own.
public struct Lock: Sendable {
  /// The lock's name.
  public let name: String
  private let container: SharedContainer

  init(_ name: String, _ container: SharedContainer) {
    self.name = name
    self.container = container
  }

  /// Waits until the lock is free, and holds it while the body runs.
  ///
  /// The body runs on the calling thread. The body may use everything in the container except a
  /// second named lock, of any name and container: that throws
  /// ``WormholeError/Code-swift.struct/nested`` at once, because two processes that take two
  /// locks in different orders would wait for each other. A named lock inside an update of the
  /// same container throws the same error.
  ///
  /// - Parameters:
  ///   - timeout: how long to wait before the call throws
  ///     ``WormholeError/Code-swift.struct/timedOut``; by default as in the options.
  ///   - body: runs while the lock is held. If the body throws, the caller receives its error.
  /// - Throws: ``WormholeError/Code-swift.struct/superseded``, after the body has run, if another
  ///   process took the lock over: both bodies may have run at once.
  public func hold<Result>(
    within timeout: Duration? = nil, _ body: () throws -> Result
  ) throws -> Result {
    try hold(within: timeout, takeOverAfter: nil) { _ in try body() }
  }

  /// Waits until the lock is free, or its holder has been suspended for a given time, and holds
  /// the lock while the body runs.
  ///
  /// As `hold(within:_:)`. If the suspended holder resumes, both bodies may run at once.
  ///
  /// - Parameters:
  ///   - timeout: how long to wait; by default as in the options, plus `takeOverAfter`.
  ///   - takeOverAfter: how long the holder must have been suspended; at least the lease.
  ///   - body: receives the generation, a number that rises with each takeover: a resource that
  ///     the body changes can refuse an older generation.
  public func hold<Result>(
    within timeout: Duration? = nil, takeOverAfter: Duration?,
    _ body: (_ generation: Int) throws -> Result
  ) throws -> Result {
    let mark = try LockMark.begin(name)
    defer { mark.end() }
    let held = try naming {
      try slot().hold(
        "hold lock", takeOverAfter: takeOverAfter, patience: patience(timeout, takeOverAfter),
        isOutermost: true
      ) { generation in
        LockMark.$current.withValue(mark) { Swift.Result { try body(generation) } }
      }
    }
    let result = try held.result.get()
    if held.wasSuperseded { throw superseded }
    return result
  }

  // MARK: For tasks

  /// Waits until the lock is free, and holds it while the body runs.
  ///
  /// The async overload. No thread of the pool waits. If the task is cancelled while it waits,
  /// the body does not run. Tasks that the body starts count as inside the body until the body
  /// has ended.
  public func hold<Result>(
    within timeout: Duration? = nil, _ body: () async throws -> Result
  ) async throws -> Result {
    try await hold(within: timeout, takeOverAfter: nil) { (_: Int) async throws -> Result in
      try await body()
    }
  }

  /// Waits until the lock is free, or its holder has been suspended for a given time, and holds
  /// the lock while the body runs.
  ///
  /// The async overload. No thread of the pool waits. If the task is cancelled while it waits,
  /// the body does not run.
  public func hold<Result>(
    within timeout: Duration? = nil, takeOverAfter: Duration?,
    _ body: (_ generation: Int) async throws -> Result
  ) async throws -> Result {
    try WormholeError.checkQueues("hold lock", name)
    let mark = try LockMark.begin(name)
    defer { mark.end() }
    let (slot, name) = (try slot(), name)
    let cancellation = CancellationFlag()
    let patience = patience(timeout, takeOverAfter, cancellation)
    let stay = LockSession(name, cancellation) { stay in
      try slot.hold(
        "hold lock", takeOverAfter: takeOverAfter, patience: patience, isOutermost: true
      ) {
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
      generation = try await stay.generation()
    } catch {
      throw named(error)
    }
    let result: Result
    do {
      result = try await LockMark.$current.withValue(mark) { try await body(generation) }
    } catch {
      _ = try? await stay.leave()
      throw error
    }
    let wasSuperseded: Bool
    do { wasSuperseded = try await stay.leave() } catch { throw named(error) }
    if wasSuperseded { throw superseded }
    return result
  }

  /// Waits until the lock is free, and holds it while a body runs that does not wait for other
  /// tasks.
  ///
  /// As the overload with an async body. The body runs where the task runs.
  public func hold<Result>(
    within timeout: Duration? = nil, _ body: () throws -> Result
  ) async throws -> Result {
    try await hold(within: timeout, takeOverAfter: nil) { (_: Int) async throws -> Result in
      try body()
    }
  }

  /// Waits until the lock is free, or its holder has been suspended for a given time, and holds
  /// the lock while a body runs that does not wait for other tasks.
  ///
  /// As the overload with an async body. The body runs where the task runs.
  public func hold<Result>(
    within timeout: Duration? = nil, takeOverAfter: Duration?,
    _ body: (_ generation: Int) throws -> Result
  ) async throws -> Result {
    try await hold(within: timeout, takeOverAfter: takeOverAfter) {
      (generation: Int) async throws -> Result in
      try body(generation)
    }
  }

  // MARK: Its slot

  private func slot() throws(WormholeError) -> Slot {
    try container.storage.slot(prefix: Container.Folder.lockPrefix, name)
  }

  /// Returns the deadline and the cancellation of a call.
  ///
  /// A caller that passes no timeout and asks for takeover waits long enough for the takeover.
  private func patience(
    _ timeout: Duration?, _ takeOverAfter: Duration?, _ cancellation: CancellationFlag? = nil
  ) -> Patience {
    Patience(
      within: timeout ?? container.options.timeout + max(takeOverAfter ?? .zero, .zero),
      cancellation: cancellation ?? OffPool.cancellation)
  }

  private var superseded: WormholeError {
    WormholeError(
      .superseded, "hold lock", name,
      because: "another process took over the lock while this process held it",
      hint: "check whether both processes used the resource at the same time")
  }

  private func naming<Success>(_ body: () throws -> Success) throws -> Success {
    do { return try body() } catch { throw named(error) }
  }

  /// Replaces the subject of an error with the name that the caller knows.
  private func named(_ error: any Error) -> any Error {
    (error as? WormholeError)?.named(name) ?? error
  }
}

extension SharedContainer {
  /// Returns the lock with a name.
  ///
  /// The call makes and reads nothing. An invalid name is an error when the lock is used.
  public func lock(_ name: String) -> Lock { Lock(name, self) }
}

/// The named lock that a task or a thread holds or waits for.
final class LockMark: Sendable {
  @TaskLocal static var current: LockMark?

  private let name: String
  /// Whether the body has ended.
  ///
  /// A task started in the body may outlive it.
  private let isOver = Atomic<Bool>(false)

  private init(_ name: String) { self.name = name }

  static func begin(_ name: String) throws(WormholeError) -> LockMark {
    guard let outer = current, !outer.isOver.load(ordering: .acquiring) else {
      return LockMark(name)
    }
    throw WormholeError(
      .nested, "hold lock", name, because: "the calling thread already holds lock '\(outer.name)'",
      hint: "release the first lock before, or use one lock for both")
  }

  func end() { isOver.store(true, ordering: .releasing) }
}
