internal import Synchronization
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// One access of a coordinator, in every container that orders some of its paths.
///
/// Every access visits the containers in the same order, by their identifiers, so two accesses
/// never wait for each other between containers.
final class AccessSession: Sendable {
  private let executors: [AccessExecutor]
  private let intents: [Coordinator.Intent]
  private let resolved: [[AccessPath]]
  let held: HeldAccess
  private let subject: String
  let presenters: PresenterInquiry
  let arbiters: Arbiters
  private let patience: Patience
  private let isAnswering: Bool

  /// - Parameters:
  ///   - whose: the purpose of the access, and the purpose of the presenter that the access neither
  ///     asks nor notifies.
  ///   - isAnswering: whether the access is made inside a presenter's closure; then it asks no
  ///     presenter.
  ///   - creates: whether a missing container of a group is created.
  init(
    _ intents: [Coordinator.Intent], _ whose: (purpose: String, presenter: String?),
    _ arbiters: Arbiters, _ takeOver: Duration?, _ patience: Patience, _ isAnswering: Bool,
    creates: Bool = true
  ) throws(WormholeError) {
    let purpose = whose.purpose
    (self.patience, self.isAnswering, self.arbiters) = (patience, isAnswering, arbiters)
    subject = intents.first?.path ?? ""
    guard !UpdatesUnderWay.isInsideAny else {
      throw WormholeError(
        .nested, "coordinate", subject, because: "the calling thread is inside an update",
        hint: "return from the update first, or update inside the access")
    }
    self.intents = intents
    var resolved: [[AccessPath]] = []
    var parts: [String: (room: AccessDirectory, parts: [ClaimedPath], replaced: [AccessPath])] = [:]
    var seen: [String: PresenterInquiry.Place] = [:]
    for intent in intents {
      let paths = try AccessPath.resolve(intent.path)
      resolved.append(paths)
      for path in paths {
        let room = try arbiters.room(for: path, creates: creates)
        let part = ClaimedPath(path, writes: intent.kind != .reading)
        parts[room.key, default: (room, [], [])].parts.append(part)
        seen[room.key, default: (room, [])].parts.append(
          PathUse(path: path, writes: part.writes, manner: intent.manner))
      }
      if intent.kind == .replacing, let target = paths.last {
        parts[try arbiters.room(for: target, creates: creates).key]?.replaced.append(target)
      }
    }
    self.resolved = resolved
    let whole = AccessClaim(parts.values.flatMap(\.parts), purpose: purpose)
    let outer = HeldAccess.current?.living
    held = HeldAccess(whole, subject, outer)
    let own = Set([purpose, whose.presenter].compactMap { $0 })
    let replaces = intents.contains { $0.kind == .replacing }
    if !replaces, held.isCovered {
      // The enclosing accesses have asked all presenters already, except whether the file may be
      // removed.
      let isDeleting = intents.contains { $0.manner == .deleting }
      presenters = PresenterInquiry(isDeleting ? Array(seen.values) : [], but: own)
      executors = []
      return
    }
    try held.refuseConflicts()
    presenters = PresenterInquiry(Array(seen.values), but: own)
    let subject = subject
    executors = parts.sorted { $0.key < $1.key }.map { _, place in
      var request = AccessRequest(
        AccessClaim(place.parts, purpose: purpose), subject: subject)
      request.replaced = place.replaced
      request.mayMakeNothing = intents.contains { $0.mayMakeNothing }
      request.takeOver = takeOver
      request.others = { arbiters.all() }
      return AccessExecutor(place.room, request, patience)
    }
  }

  /// Waits until the access may run.
  func begin() throws(WormholeError) -> Coordinator.Access {
    // Ask before the access can block others: a presenter that saves needs an access of its own.
    if !isAnswering, !Mutants.has(.askAfterArriving) { presenters.ask(patience) }
    if patience.cancellation?.isCancelled == true {
      presenters.end(wrote: false)
      throw WormholeError(.cancelled, "coordinate", subject, because: "the access was cancelled")
    }
    for (index, executor) in executors.enumerated() {
      do throws(WormholeError) {
        try executor.begin(inside: held.tokens)
      } catch {
        for earlier in executors[..<index].reversed() { try? earlier.end(commits: false) }
        presenters.end(wrote: false)
        throw error
      }
      held.add(executor.token)
    }
    if Mutants.has(.askAfterArriving) { presenters.ask(patience) }
    // Each executor covers one container and lists its paths in the order of the intents.
    var new: [AccessPath: String] = [:]
    for executor in executors {
      for (target, path) in zip(executor.request.replaced, executor.newPaths) {
        new[target] = path
      }
    }
    let originals = zip(intents, resolved).map { intent, paths in
      // A path that is not text cannot be returned; return the caller's path.
      paths[0].isText ? paths[0].text : intent.path
    }
    let paths = zip(zip(intents, resolved), originals).map { pair, original in
      pair.0.kind == .replacing ? pair.1.last.flatMap { new[$0] } ?? original : original
    }
    return Coordinator.Access(paths: paths, originals: originals, stay: self)
  }

  var stands: Bool { executors.allSatisfy(\.stands) }

  /// Ends the access; throws the first error.
  func end(commits: Bool) throws(WormholeError) {
    held.end()
    let replacing = executors.filter { !$0.request.replaced.isEmpty }
    let others = executors.filter { $0.request.replaced.isEmpty }
    let replaces = commits && !replacing.isEmpty
    var failure: WormholeError?
    if replaces, !others.allSatisfy(\.stands) {
      failure = WormholeError(
        .superseded, "coordinate", subject,
        because: "another access overtook this one while its process was suspended",
        hint: "repeat the access; no file was replaced")
    }
    let all = replacing.reversed() + others.reversed()
    var isWhole = commits && failure == nil
    for executor in all {
      do throws(WormholeError) {
        if try !executor.settle(commits: isWhole) { isWhole = false }
      } catch {
        failure = failure ?? error
        isWhole = false
      }
    }
    // Notify before leaving. If this process dies earlier, the process that removes its access file
    // notifies the presenters. After the access has left, no process would.
    let options = executors.first?.room.container.options
    let notified = Instant.now
    presenters.end(wrote: true, moves: held.moves)
    for executor in all {
      do throws(WormholeError) {
        try executor.leave()
      } catch {
        // The body has ended and the new files are in place: the body of the overtaking access ran
        // later.
        let isLate = replaces && failure == nil && executor.request.replaced.isEmpty
        if !isLate || error.code != .superseded { failure = failure ?? error }
      }
    }
    // If this process was suspended since the notice, the access of a presenter that wanted to read
    // the change was refused with `stopped`.
    if let options, Instant.now - notified > options.lease,
      !Mutants.has(.tellOnce)
    {
      presenters.end(wrote: true, moves: held.moves)
    }
    if let failure { throw failure }
  }
}

/// The accesses that a task or a thread is inside of.
final class HeldAccess: Sendable {
  @TaskLocal static var current: HeldAccess?

  private let claim: AccessClaim
  private let subject: String
  private let outer: HeldAccess?
  /// Whether the access has ended.
  ///
  /// A task started in its body may outlive the access.
  private let isOver = Atomic<Bool>(false)
  private let own = Monitor<[AccessToken]>([])
  private let moved = Monitor<[PathMove]>([])
  private let owner = ProcessCopy.current
  /// Whether the access was inherited from the process that started this program.
  private let isInherited: Bool

  init(
    _ claim: AccessClaim, _ subject: String, _ outer: HeldAccess?, isInherited: Bool = false
  ) {
    self.claim = claim
    self.subject = subject
    self.outer = outer
    self.isInherited = isInherited
  }

  /// This access, or the nearest enclosing access still in progress.
  var living: HeldAccess? {
    isOver.load(ordering: .acquiring) || !owner.isCurrent ? outer?.living : self
  }

  private var all: [HeldAccess] { [self] + (outer?.living?.all ?? []) }

  /// All held accesses, including the started parts of this access.
  var tokens: [AccessToken] { all.flatMap { one in one.own.withLock { $0 } } }

  func add(_ token: AccessToken) { own.withLock { $0.append(token) } }

  func end() { isOver.store(true, ordering: .releasing) }

  /// The moves inside this access, as far as presenters were notified.
  var moves: [PathMove] { moved.withLock { $0 } }

  /// Records a move in the enclosing accesses too, because each reports its own changes.
  func note(_ move: PathMove) {
    for one in all { one.moved.withLock { $0.append(move) } }
  }

  /// Whether this access, or an enclosing access of the same purpose, is still in progress and may
  /// write at the path.
  func writes(_ path: AccessPath) -> Bool {
    let part = AccessClaim([ClaimedPath(path, writes: true)], purpose: claim.purpose)
    return living?.all.contains { $0.claim.covers(part) } ?? false
  }

  func within<Result>(_ body: () -> Result) -> Result {
    Self.$current.withValue(self, operation: body)
  }

  /// Whether the enclosing accesses cover this access.
  var isCovered: Bool {
    let around = all.dropFirst()
    return !around.isEmpty
      && claim.parts.allSatisfy { part in
        around.contains { $0.claim.covers(AccessClaim([part], purpose: claim.purpose)) }
      }
  }

  /// Throws if this access conflicts with an enclosing access.
  func refuseConflicts() throws(WormholeError) {
    guard let outer = all.dropFirst().first(where: { $0.claim.conflicts(with: claim) }) else {
      return
    }
    throw WormholeError(
      .nested, "coordinate", subject,
      because: "the calling thread is inside a conflicting access to '\(outer.subject)'",
      hint: outer.isInherited
        ? "use the outer command's access to the file"
        : "return from the outer access first, or use a single coordinator for both accesses")
  }
}
