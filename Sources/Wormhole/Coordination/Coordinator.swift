internal import SharedContainer
internal import Syscalls

extension Wormhole {
  /// Lets programs take turns at files, wherever these lie.
  ///
  /// While one writes a file, or anything in a folder, nobody else who coordinates reads or writes
  /// there; readers share. Nothing is opened or locked for that, and whoever does not coordinate is
  /// not kept away.
  ///
  /// No order of steps ends in a deadlock: every wait ends, with an error at the latest when its
  /// time is up; a program that was killed is in nobody's way, and one that was stopped is named at
  /// once to those who wait for it, or they go past it, if they have asked for that. Accesses that
  /// conflict run in the order in which they came, so that readers cannot shut a writer out.
  ///
  /// It may be used from any thread, by several at once. See <doc:Coordination>.
  public final class Coordinator: Sendable {
    /// What it is used for: accesses of one purpose never wait for each other, in whatever program.
    ///
    /// One that was not given is another in a copy of the process, which is somebody else.
    public var purpose: String {
      isOwned ? own : "\(own).\(Self.copies.current.name)"
    }

    private let own: String
    private let isGiven: Bool
    private let owner = ProcessCopy.current
    private static let copies = OneForEachProcess { CopyName() }

    /// What tells a copy of the process from what it is a copy of.
    private final class CopyName: Sendable { let name = Environment().randomName() }

    private var isOwned: Bool { isGiven || owner.isCurrent }
    private let arbiters: Arbiters?
    /// The purpose of the presenter that it was made with, which it neither asks nor tells.
    private let presenter: String?
    private let waits = Monitor<[Int: Cancellation]>([:])
    private let numbers = Monitor(0)

    /// A coordinator of a purpose.
    ///
    /// - Parameter purpose: by default one that nothing else has.
    public convenience init(purpose: String? = nil) { self.init(purpose: purpose, nil) }

    package init(purpose: String? = nil, _ arbiters: Arbiters?, presenter: String? = nil) {
      (own, isGiven) = (purpose ?? Environment().randomName(), purpose != nil)
      self.arbiters = arbiters
      self.presenter = presenter
    }

    /// How long a call waits that does not say so; with `takeOverAfter` so much longer.
    public static let defaultTimeout = Duration.seconds(30)

    /// Whoever does not say how long, but asks to pass who stands still, waits for that to happen.
    package static func timeout(_ given: Duration?, _ takeOverAfter: Duration?) -> Duration {
      given ?? defaultTimeout + max(takeOverAfter ?? .zero, .zero)
    }

    // MARK: Accesses

    /// Waits until nobody writes there, and has the body read.
    ///
    /// As `access(_:within:takeOverAfter:_:)`.
    ///
    /// - Parameters:
    ///   - path: which file or directory.
    ///   - timeout: how long to wait at most; by default as ``defaultTimeout`` says.
    ///   - takeOverAfter: how long whoever is in the way must have stood still to be passed; nil
    ///     for an error that names it.
    ///   - body: gets the path to read.
    public func read<Result>(
      _ path: String, within timeout: Duration? = nil, takeOverAfter: Duration? = nil,
      _ body: (_ path: String) throws -> Result
    ) throws -> Result {
      try access([.reading(path)], within: timeout, takeOverAfter: takeOverAfter) { access in
        try body(access.paths[0])
      }
    }

    /// Waits until nobody else uses it, and has the body write.
    ///
    /// As `access(_:within:takeOverAfter:_:)`. What it writes is not
    /// fenced: if this process stands still and others take over, both may write at once.
    ///
    /// - Parameters:
    ///   - path: which file or directory.
    ///   - timeout: how long to wait at most; by default as ``defaultTimeout`` says.
    ///   - takeOverAfter: how long whoever is in the way must have stood still to be passed; nil
    ///     for an error that names it.
    ///   - body: gets the path to write.
    public func write<Result>(
      _ path: String, within timeout: Duration? = nil, takeOverAfter: Duration? = nil,
      _ body: (_ path: String) throws -> Result
    ) throws -> Result {
      try access([.writing(path)], within: timeout, takeOverAfter: takeOverAfter) { access in
        try body(access.paths[0])
      }
    }

    /// Waits until nobody else uses it, has the body make a new file, and puts that in the place of
    /// the old one in one step, unless others took over meanwhile.
    ///
    /// As `access(_:within:takeOverAfter:_:)`.
    ///
    /// - Parameters:
    ///   - path: which file or directory.
    ///   - timeout: how long to wait at most; by default as ``defaultTimeout`` says.
    ///   - takeOverAfter: how long whoever is in the way must have stood still to be passed; nil
    ///     for an error that names it.
    ///   - body: gets the path at which it makes the new file, or directory, and that of the old
    ///     one.
    public func replace<Result>(
      _ path: String, within timeout: Duration? = nil, takeOverAfter: Duration? = nil,
      _ body: (_ new: String, _ old: String) throws -> Result
    ) throws -> Result {
      try access([.replacing(path)], within: timeout, takeOverAfter: takeOverAfter) { access in
        try body(access.paths[0], access.originals[0])
      }
    }

    /// Waits until nobody is in the way of any of the intents, and runs the body.
    ///
    /// The body runs on the calling thread. In it everything of this library can be called, another
    /// access too: one that the outer one would be in the way of throws
    /// ``WormholeError/Code-swift.struct/nested`` at once, and one that closes a ring, of programs
    /// that wait for each other, ``WormholeError/Code-swift.struct/deadlock``.
    ///
    /// - Parameters:
    ///   - intents: what is read and written; all of it is had at once, and lost at once. Without
    ///     any the body runs at once.
    ///   - timeout: how long to wait before it throws
    ///     ``WormholeError/Code-swift.struct/timedOut``; by default as ``defaultTimeout`` says.
    ///   - takeOverAfter: how long a process must have stood still, no shorter than a second,
    ///     before its access is taken over; by default this throws
    ///     ``WormholeError/Code-swift.struct/stopped``.
    ///   - body: what it throws comes through, and then nothing is replaced.
    /// - Throws: ``WormholeError/Code-swift.struct/superseded``, once the body has run, if this
    ///   process stood still and others took over: what is *replaced* is then as it was.
    public func access<Result>(
      _ intents: [Intent], within timeout: Duration? = nil,
      takeOverAfter: Duration? = nil, _ body: (Access) throws -> Result
    ) throws -> Result {
      try access(
        intents, within: timeout, takeOverAfter: takeOverAfter, announced: announce(), body)
    }

    /// The same, for a call that was announced.
    package func access<Result>(
      _ intents: [Intent], within timeout: Duration?, takeOverAfter: Duration?,
      announced call: AnnouncedCall, _ body: (Access) throws -> Result
    ) throws -> Result {
      defer { forget(call) }
      let stay = try stay(
        intents, timeout, takeOverAfter, call.cancellation, call.isAnswering)
      let access = try stay.begin()
      forget(call)
      let result = stay.held.within { Swift.Result { try body(access) } }
      do {
        let value = try result.get()
        try stay.end(commits: true)
        return value
      } catch {
        // What the body has thrown comes before what ending it says.
        guard case .failure = result else { throw error }
        try? stay.end(commits: false)
        throw error
      }
    }

    /// Ends all waits that are under way through this coordinator: they throw
    /// ``WormholeError/Code-swift.struct/cancelled``.
    ///
    /// What runs already goes on, and what begins later waits as before.
    public func cancel() {
      for cancellation in waits.withLock({ Array($0.values) }) { cancellation.cancel() }
    }

    // MARK: For tasks

    /// Waits until nobody is in the way of any of the intents, and runs the body.
    ///
    /// As the one without `await`. No thread of the pool waits; if the task is cancelled while it
    /// waits the body does not run. Tasks that the body starts count as the same, until it has
    /// ended.
    public func access<Result>(
      _ intents: [Intent], within timeout: Duration? = nil,
      takeOverAfter: Duration? = nil, _ body: (Access) async throws -> Result
    ) async throws -> Result {
      let subject = intents.first?.path ?? ""
      // The thread that waits knows nothing of what the task is inside of.
      let (isAnswering, around) = (PresenterCall.isUnderWay, HeldAccess.current)
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

    /// A call that ``cancel()`` knows of.
    package struct AnnouncedCall: Sendable {
      fileprivate let number: Int
      fileprivate let cancellation: Cancellation
      /// It is made inside what a presenter was asked.
      fileprivate let isAnswering: Bool
    }

    /// Has ``cancel()`` end the wait of a call that is made later, on whatever thread.
    package func announce() -> AnnouncedCall {
      let number = numbers.withLock { number in
        number += 1
        return number
      }
      let cancellation = OffPool.cancellation ?? Cancellation()
      waits.withLock { $0[number] = cancellation }
      return AnnouncedCall(
        number: number, cancellation: cancellation, isAnswering: PresenterCall.isUnderWay)
    }

    /// It waits no more, or will not be made.
    package func forget(_ call: AnnouncedCall) { waits.withLock { $0[call.number] = nil } }

    private func stay(
      _ intents: [Intent], _ timeout: Duration?, _ takeOver: Duration?,
      _ cancellation: Cancellation, _ isAnswering: Bool
    ) throws(WormholeError) -> AccessStay {
      try AccessStay(
        // In a copy of the process the presenter is somebody else's.
        intents, (purpose, owner.isCurrent ? presenter : nil), orderedBy, takeOver,
        Patience(until: .now + Self.timeout(timeout, takeOver), cancellation: cancellation),
        isAnswering)
    }

    /// What says which container orders a file.
    var orderedBy: Arbiters { arbiters ?? Arbiters.shared.current }
  }
}
