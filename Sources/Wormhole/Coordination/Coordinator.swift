internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Orders the accesses of programs to files, at any path.
///
/// While an access writes a file, or anything in a folder, no other coordinated access reads or
/// writes there. Readers share. No file is opened or locked for this purpose, so an uncoordinated
/// program is not kept away.
///
/// No order of steps ends in a deadlock: every wait ends, at the latest with an error at its
/// deadline. A killed program blocks no program. If a program is suspended inside its access, its
/// waiters get an error that names it, or overtake it if the waiters have asked for takeover.
/// Conflicting accesses run in the order of their arrival, so readers cannot starve a writer.
///
/// A coordinator may be used from any thread, and from several at once. See <doc:Coordination>.
public final class Coordinator: Sendable {
  /// The purpose of the accesses: accesses of the same purpose never wait for each other, in any
  /// program.
  ///
  /// If the caller has given no purpose, a forked child has a different purpose than its parent,
  /// because it is another process.
  public var purpose: String {
    isOwned ? own : "\(own).\(Self.copies.current.name)"
  }

  private let own: String
  private let isGiven: Bool
  private let owner = ProcessCopy.current
  private static let copies = OneForEachProcess { CopyName() }

  /// A name that distinguishes a forked child from its parent.
  private final class CopyName: Sendable { let name = Environment().randomName() }

  private var isOwned: Bool { isGiven || owner.isCurrent }
  private let arbiters: Arbiters?
  /// The purpose of this coordinator's own presenter: its accesses neither ask nor notify that
  /// presenter.
  private let presenter: String?
  private let waits = Monitor<[Int: CancellationFlag]>([:])
  private let numbers = Monitor(0)

  /// Creates a coordinator of a purpose.
  ///
  /// - Parameter purpose: the purpose; by default, a unique name.
  public convenience init(purpose: String? = nil) { self.init(purpose: purpose, nil) }

  package init(purpose: String? = nil, _ arbiters: Arbiters?, presenter: String? = nil) {
    (own, isGiven) = (purpose ?? Environment().randomName(), purpose != nil)
    self.arbiters = arbiters
    self.presenter = presenter
  }

  /// The timeout of a call that passes none; `takeOverAfter` is added to it.
  public static let defaultTimeout = Duration.seconds(30)

  /// Returns the timeout of a call.
  ///
  /// A caller that passes no timeout and asks for takeover waits long enough for the takeover.
  package static func timeout(_ given: Duration?, _ takeOverAfter: Duration?) -> Duration {
    given ?? defaultTimeout + max(takeOverAfter ?? .zero, .zero)
  }

  // MARK: Accesses

  /// Waits until no access writes the file, and runs the body, which reads.
  ///
  /// As `access(_:within:takeOverAfter:_:)`.
  ///
  /// - Parameters:
  ///   - path: the file or directory.
  ///   - timeout: the longest time to wait; by default ``defaultTimeout``.
  ///   - takeOverAfter: how long the process of a conflicting access must have been suspended
  ///     before the access is overtaken; nil for an error that names the process.
  ///   - body: receives the path to read.
  public func read<Result>(
    _ path: String, within timeout: Duration? = nil, takeOverAfter: Duration? = nil,
    _ body: (_ path: String) throws -> Result
  ) throws -> Result {
    try access([.reading(path)], within: timeout, takeOverAfter: takeOverAfter) { access in
      try body(access.paths[0])
    }
  }

  /// Waits until no conflicting access uses the file, and runs the body, which writes.
  ///
  /// As `access(_:within:takeOverAfter:_:)`. The body's writes are not fenced: if this process is
  /// suspended and another access takes over, both may write at once.
  ///
  /// - Parameters:
  ///   - path: the file or directory.
  ///   - timeout: the longest time to wait; by default ``defaultTimeout``.
  ///   - takeOverAfter: how long the process of a conflicting access must have been suspended
  ///     before the access is overtaken; nil for an error that names the process.
  ///   - body: receives the path to write.
  public func write<Result>(
    _ path: String, within timeout: Duration? = nil, takeOverAfter: Duration? = nil,
    _ body: (_ path: String) throws -> Result
  ) throws -> Result {
    try access([.writing(path)], within: timeout, takeOverAfter: takeOverAfter) { access in
      try body(access.paths[0])
    }
  }

  /// Waits until no conflicting access uses the file, runs the body, which makes a new file, and
  /// puts the new file in the place of the old file in one step, unless another access has taken
  /// over in the meantime.
  ///
  /// As `access(_:within:takeOverAfter:_:)`.
  ///
  /// - Parameters:
  ///   - path: the file or directory.
  ///   - timeout: the longest time to wait; by default ``defaultTimeout``.
  ///   - takeOverAfter: how long the process of a conflicting access must have been suspended
  ///     before the access is overtaken; nil for an error that names the process.
  ///   - body: receives the path at which to make the new file or directory, and the path of the
  ///     old file.
  public func replace<Result>(
    _ path: String, within timeout: Duration? = nil, takeOverAfter: Duration? = nil,
    _ body: (_ new: String, _ old: String) throws -> Result
  ) throws -> Result {
    try access([.replacing(path)], within: timeout, takeOverAfter: takeOverAfter) { access in
      try body(access.paths[0], access.originals[0])
    }
  }

  /// Waits until no access conflicts with the intents, and runs the body.
  ///
  /// The body runs on the calling thread. It may call everything in this library, including a
  /// second access. If the inner access conflicts with the outer access, it throws
  /// ``WormholeError/Code-swift.struct/nested`` at once. If the inner access closes a cycle of
  /// waiting programs, it throws ``WormholeError/Code-swift.struct/deadlock``.
  ///
  /// - Parameters:
  ///   - intents: the paths to read and write; all are acquired together and lost together.
  ///     Without any intent, the body runs at once.
  ///   - timeout: how long to wait before the call throws
  ///     ``WormholeError/Code-swift.struct/timedOut``; by default ``defaultTimeout``.
  ///   - takeOverAfter: how long a process must have been suspended, at least one second, before
  ///     its access is taken over; by default, the call throws
  ///     ``WormholeError/Code-swift.struct/stopped``.
  ///   - body: if the body throws, nothing is replaced, and the caller receives the body's error.
  /// - Throws: ``WormholeError/Code-swift.struct/superseded``, after the body has run, if this
  ///   process was suspended and another access took over: a *replaced* file keeps its old
  ///   content.
  public func access<Result>(
    _ intents: [Intent], within timeout: Duration? = nil,
    takeOverAfter: Duration? = nil, _ body: (Access) throws -> Result
  ) throws -> Result {
    try access(
      intents, within: timeout, takeOverAfter: takeOverAfter, announced: announce(), body)
  }

  /// The same, for an announced call.
  ///
  /// - Parameter creates: whether a missing container of a group is created; otherwise an access to
  ///   the group's files fails.
  package func access<Result>(
    _ intents: [Intent], within timeout: Duration?, takeOverAfter: Duration?,
    announced call: AnnouncedCall, creates: Bool = true, _ body: (Access) throws -> Result
  ) throws -> Result {
    defer { forget(call) }
    let stay = try stay(
      intents, timeout, takeOverAfter, call.cancellation, call.isAnswering, creates: creates)
    let access = try stay.begin()
    forget(call)
    let result = stay.held.within { Swift.Result { try body(access) } }
    do {
      let value = try result.get()
      try stay.end(commits: true)
      return value
    } catch {
      // The body's error takes precedence over an error from ending the access.
      guard case .failure = result else { throw error }
      try? stay.end(commits: false)
      throw error
    }
  }

  /// Ends all waits in progress of this coordinator: they throw
  /// ``WormholeError/Code-swift.struct/cancelled``.
  ///
  /// Accesses that run already continue, and later calls wait as usual.
  public func cancel() {
    for cancellation in waits.withLock({ Array($0.values) }) { cancellation.cancel() }
  }

  // MARK: For tasks

  /// Waits until no access conflicts with the intents, and runs the body.
  ///
  /// The async overload. No thread of the pool waits. If the task is cancelled while it waits,
  /// the body does not run. Tasks that the body starts count as inside the access until the
  /// access has ended.
  public func access<Result>(
    _ intents: [Intent], within timeout: Duration? = nil,
    takeOverAfter: Duration? = nil, _ body: (Access) async throws -> Result
  ) async throws -> Result {
    let subject = intents.first?.path ?? ""
    // Task-local values do not reach the waiting thread, so they are read here.
    let (isAnswering, around) = (PresenterCallMark.isUnderWay, HeldAccess.current)
    let (stay, access) = try await OffPool.runAny("coordinate", subject) {
      let call = self.announce()
      defer { self.forget(call) }
      let stay = try HeldAccess.$current.withValue(around) {
        try self.stay(intents, timeout, takeOverAfter, call.cancellation, isAnswering)
      }
      return (stay, try stay.begin())
    }
    let result: Result
    do {
      result = try await HeldAccess.$current.withValue(stay.held) { try await body(access) }
    } catch {
      stay.held.end()
      await OffPool.runForSure { try? stay.end(commits: false) }
      throw error
    }
    stay.held.end()
    let failure = Monitor<WormholeError?>(nil)
    await OffPool.runForSure {
      do throws(WormholeError) {
        try stay.end(commits: true)
      } catch {
        failure.withLock { $0 = error }
      }
    }
    if let failure = failure.withLock({ $0 }) { throw failure }
    return result
  }

  // MARK: Its waits

  /// A call whose wait ``cancel()`` can end.
  package struct AnnouncedCall: Sendable {
    fileprivate let number: Int
    fileprivate let cancellation: CancellationFlag
    /// Whether the call is made inside a presenter's closure.
    fileprivate let isAnswering: Bool
  }

  /// Lets ``cancel()`` end the wait of a later call, on any thread.
  package func announce() -> AnnouncedCall {
    let number = numbers.withLock { number in
      number += 1
      return number
    }
    let cancellation = OffPool.cancellation ?? CancellationFlag()
    waits.withLock { $0[number] = cancellation }
    return AnnouncedCall(
      number: number, cancellation: cancellation, isAnswering: PresenterCallMark.isUnderWay)
  }

  /// Removes the call: its wait is over, or the call will not be made.
  package func forget(_ call: AnnouncedCall) { waits.withLock { $0[call.number] = nil } }

  private func stay(
    _ intents: [Intent], _ timeout: Duration?, _ takeOver: Duration?,
    _ cancellation: CancellationFlag, _ isAnswering: Bool, creates: Bool = true
  ) throws(WormholeError) -> AccessSession {
    try AccessSession(
      // In a forked child, the presenter belongs to the parent.
      intents, (purpose, owner.isCurrent ? presenter : nil), orderedBy, takeOver,
      Patience(within: Self.timeout(timeout, takeOver), cancellation: cancellation),
      isAnswering, creates: creates)
  }

  /// Selects the container that orders a file.
  var orderedBy: Arbiters { arbiters ?? Arbiters.shared.current }
}
