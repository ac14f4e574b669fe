internal import WormholePropertyLists
internal import WormholeSyscalls

/// The parameters of an access.
package struct AccessRequest: Sendable {
  package let claim: AccessClaim
  /// The paths that the access replaces, without links.
  package var replaced: [AccessPath] = []
  /// Whether a path without a new file stays as it is; otherwise a missing new file is an error.
  package var mayMakeNothing = false
  /// How long a running blocker must be suspended before the access overtakes the blocker; nil: it
  /// never does.
  package var takeOver: Duration?
  /// The caller's name for the access, for errors.
  package var subject: String
  /// Further access directories, in which holders of accesses here may wait.
  package var others: @Sendable () -> [AccessDirectory] = { [] }

  package init(_ claim: AccessClaim, subject: String) {
    self.claim = claim
    self.subject = subject
  }
}

/// Carries out the decisions of ``AccessMachine``, for one access.
///
/// ``begin()`` returns when the access may run, and ``end(commits:)`` ends the access: on any
/// threads, but never at the same time.
package final class AccessExecutor: @unchecked Sendable {
  // One thread at a time uses the properties: the caller starts and ends the access in order.
  var machine: AccessMachine<AccessName>
  private var action = AccessMachine<AccessName>.Action.lock
  var home: AccessHome?
  /// The lock of arrivals as the latest arrival held it.
  private var lock: LockExecutor?
  var process: AccessProcess?
  /// The content of the own file.
  var entry: AccessEntry?
  /// Whether hidden files could not be removed: the access's file stays for sweepers.
  var leavesHidden = false
  var rings = 0
  var isWaiting = false
  private var seen: Set<AccessName> = []
  /// No access has arrived since the process's last listing, which was empty.
  private var isAlone = false
  private var highest = UInt64(0)
  var failure: WormholeError?
  var files: [HiddenFile] = []
  private(set) var name: AccessName?

  package let room: AccessDirectory
  var held: [AccessToken] = []
  package let request: AccessRequest
  let patience: Patience

  var container: Container { room.container }
  static var operation: String { "coordinate" }

  /// The paths for the new files, in the order of the replaced paths.
  package var newPaths: [String] { files.map(\.path) }

  package init(_ room: AccessDirectory, _ request: AccessRequest, _ patience: Patience) {
    self.room = room
    self.request = request
    self.patience = patience
    var terms = AccessMachine<AccessName>.Terms()
    terms.replaces = !request.replaced.isEmpty
    terms.takesOver = request.takeOver != nil
    machine = AccessMachine(terms)
  }

  /// Identifies the access after its start.
  package var token: AccessToken {
    AccessToken(container: container.id, name: name?.text ?? "")
  }

  /// Whether no process has overtaken the access.
  package var stands: Bool {
    guard let home, let name else { return false }
    return (try? room.locate(name, in: home, from: .running)) == .running
  }

  // MARK: From arrival to end

  /// Waits until the access may run.
  ///
  /// - Parameter held: the accesses that enclose the call.
  package func begin(inside held: [AccessToken] = []) throws(WormholeError) {
    if name == nil { _ = try arrive(inside: held) }
    try advance()
  }

  /// Arrives without waiting for blockers; returns whether the access may run.
  package func arrive(inside held: [AccessToken] = []) throws(WormholeError) -> Bool {
    self.held = held
    return try mayRun()
  }

  /// Whether the access may run by now.
  package func mayRun() throws(WormholeError) -> Bool {
    try container.checkOwner(Self.operation, request.subject)
    if action == .sleep { action = machine.next(.woken, after: action) }
    try advance(toSleep: true)
    return action == .run
  }

  /// Ends the access.
  ///
  /// - Parameter commits: whether the new files replace the old ones.
  /// - Throws: ``WormholeError/Code-swift.struct/superseded`` if another process overtook the
  ///   access.
  package func end(commits: Bool) throws(WormholeError) {
    _ = try settle(commits: commits)
    try leave()
  }

  /// Finishes the work before waiters may continue: the access blocks waiters until ``leave()``.
  ///
  /// - Parameter commits: whether the new files replace the old ones.
  /// - Returns: whether the commit succeeded.
  package func settle(commits: Bool) throws(WormholeError) -> Bool {
    // In a forked child the access belongs to the parent process.
    try container.checkOwner(Self.operation, request.subject)
    action = machine.next(.ran(commits: commits), after: .run)
    try advance(toLeave: true)
    return failure == nil && !machine.wasSuperseded
  }

  /// Ends the access after ``settle(commits:)``.
  ///
  /// - Throws: the first error since the access started to run.
  package func leave() throws(WormholeError) { try advance() }

  /// Continues to the next action of the caller.
  private func advance(toSleep: Bool = false, toLeave: Bool = false) throws(WormholeError) {
    while true {
      switch action {
      case .run: return
      case .sleep where toSleep: return
      case .leave where toLeave: return
      case .finish(let ending): return try conclude(ending)
      default:
        let event: AccessMachine<AccessName>.Event
        do {
          event = try perform(action)
        } catch {
          if error as? Errno == .noSuchFile { room.lookAtDirectories() }
          failure =
            failure ?? error as? WormholeError
            ?? (error as? Errno).map {
              WormholeError($0, Self.operation, request.subject, accessesIn: container)
            }
            ?? WormholeError(.system, Self.operation, request.subject, because: "\(error)")
          event = .failed
        }
        if event == .failed, case .leave = action, let name { room.leave(name) }
        action = machine.next(event, after: action)
      }
    }
  }

  private func perform(
    _ action: AccessMachine<AccessName>.Action
  ) throws -> AccessMachine<AccessName>.Event {
    switch action {
    case .lock: return try takeLock()
    case .list(let place): return try list(place)
    case .arrive(let place): return try arrive(place)
    case .unlock:
      giveLockBack()
      return .unlocked
    case .watch: return try watch()
    case .look(let name): return try look(at: name)
    case .bury(let name):
      try room.discard(name, in: open(), isOver: isOver)
      return .gone
    case .pass(let name):
      return try room.pass(name, in: open()) ? .gone : .moved
    case .take(let name, let place): return try take(name, from: place)
    case .clear(let name): return try clear(name)
    case .sleep: return try sleep()
    case .hide: return try hide()
    case .unhide: return try unhide()
    case .enter: return try enter()
    case .commit: return try commit()
    case .leave: return try retrying { () throws(Errno) in try removeOwn() }
    case .run, .finish: preconditionFailure("\(action) is an action of the caller")
    }
  }

  func open() throws(Errno) -> AccessHome {
    guard let home else { throw .noSuchFile }
    return home
  }

  // MARK: Arriving

  private func takeLock() throws -> AccessMachine<AccessName>.Event {
    let slot = room.slot
    room.removeLeftovers(isOver: isOver)
    guard slot.turns.take(patience) else { throw tooLate() }
    slot.lookAtName()
    var policy = container.policy
    policy.asksWhoWasLast = true
    var lock = LockExecutor(slot, policy, patience, Self.operation)
    var next = lock.advance(.begin)
    if next == .run, lock.beginAnewIfMoved() { next = lock.advance(.begin) }
    guard next == .run else {
      room.isEmpty = false
      slot.turns.giveBack()
      throw (lock.failure ?? tooLate()).named(request.subject)
    }
    self.lock = lock
    do {
      try show(in: room.directory(lock.directory))
    } catch {
      room.isEmpty = false
      giveLockBack()
      throw error
    }
    (seen, highest) = ([], 0)
    let wasLast = lock.wasHereLast || Mutants.has(.trustOldLook)
    isAlone = wasLast && room.isKnownEmpty(for: process)
    // A result of an earlier tenure is invalid after this one, whose mark is now the last: the
    // tenure may end without a listing, and further accesses may have arrived before.
    if !Mutants.has(.keepOldFinding) { room.isEmpty = isAlone }
    return .locked
  }

  /// Makes the process visible, and starts its heartbeat.
  private func show(in home: AccessHome) throws(Errno) {
    self.home = home
    let process = try room.ownProcess(in: home)
    if self.process !== process {
      self.process?.end()
      self.process = nil
      try process.begin(container)
      self.process = process
    }
  }

  private func list(_ place: AccessPlace) throws -> AccessMachine<AccessName>.Event {
    guard !isAlone else { return .listed([]) }
    let home = try open()
    var blockers: [AccessName] = []
    let names = try room.names(in: place, of: home)
    // The clock is read after the listing: no listed access is ahead of the clock.
    let latest = clock + AccessName.farthest
    for name in names {
      if name.stamp <= latest || Mutants.has(.trustStamps) { highest = max(highest, name.stamp) }
      guard seen.insert(name).inserted,
        let entry = try room.entry(of: name, in: place, of: home),
        entry.claim.conflicts(with: request.claim)
      else { continue }
      blockers.append(name)
    }
    // Running accesses are listed after waiting ones, so the last blocker has run longest.
    return .listed(blockers.sorted { $0.stamp > $1.stamp })
  }

  private func arrive(_ place: AccessPlace) throws -> AccessMachine<AccessName>.Event {
    room.keepKnown(seen)
    // The outcome of this access is not known yet.
    room.isEmpty = false
    let home = try open()
    // A listing opens the directory by its name; without a listing, the name has to be checked
    // here.
    if isAlone, try !home.isCurrent(place) {
      room.lookAtDirectories()
      return .lockLost
    }
    guard let process, let lock else { throw Errno.invalidArgument }
    let name = AccessName(
      stamp: try stamp(), process: process.name, number: process.nextNumber())
    let isReplacing = !request.replaced.isEmpty
    let entry = AccessEntry(
      claim: request.claim, held: held,
      hidden: request.replaced.enumerated().map { HiddenFile.path(beside: $1, name, $0) },
      identity: isReplacing ? container.options.environment.randomName() : nil,
      owner: Processes.effectiveUser)
    let bytes = try encoded(entry)
    let staging = lock.staging
    do throws(Errno) {
      try stage(bytes, in: staging.descriptor)
      try staging.descriptor.rename("next", to: home.folder(place).descriptor, name.text)
    } catch {
      guard error == .noSuchFile, lock.staging.isStale else { throw error }
      lock.forgetStaging()
      return .lockLost
    }
    (self.name, self.entry) = (name, entry)
    room.isEmpty = seen.isEmpty
    // The access may wait for long, beside thousands of waiters: the set is released.
    seen = []
    return .arrived
  }

  /// The clock for stamps.
  private var clock: UInt64 { UInt64(clamping: container.options.environment.sinceBoot()) }

  private func stamp() throws(Errno) -> UInt64 {
    guard Mutants.has(.trustStamps) else { return AccessName.stamp(above: highest, now: clock) }
    let (above, overflow) = highest.addingReportingOverflow(1)
    guard !overflow else { throw .invalidArgument }
    return max(clock, above)
  }

  private func encoded(_ entry: AccessEntry) throws -> [UInt8] {
    let bytes = try entry.encoded()
    guard bytes.count <= AccessEntry.largestFile else {
      throw WormholeError(
        .tooLarge, Self.operation, request.subject,
        because: "the paths take \(bytes.count) bytes, and the limit is "
          + "\(AccessEntry.largestFile)")
    }
    return bytes
  }

  /// Writes the entry where only the holder of the lock can write.
  private func stage(_ bytes: [UInt8], in staging: borrowing Descriptor) throws(Errno) {
    let file = try makeNext(in: staging)
    let mode = container.options.sharing.fileMode
    if mode != 0o600 { try file.setMode(mode) }
    try file.writeFully(bytes)
  }

  private func makeNext(in staging: borrowing Descriptor) throws(Errno) -> Descriptor {
    do throws(Errno) {
      return try staging.open("next", .writeOnlyNew, mode: 0o600)
    } catch {
      guard error == .fileExists else { throw error }
      // A holder that died here has left a file, perhaps of another user, and perhaps without
      // permissions for the group yet.
      try empty(staging, container.options.sharing)
      return try staging.open("next", .writeOnlyNew, mode: 0o600)
    }
  }

  private func giveLockBack() {
    _ = lock?.advance(.unchanged)
    room.slot.turns.giveBack()
  }

  // MARK: Entering, and leaving

  private func enter() throws(Errno) -> AccessMachine<AccessName>.Event {
    endWaiting()
    let home = try open()
    guard try home.isCurrent(.running) else {
      // Later arrivals cannot find the access.
      room.lookAtDirectories()
      return .passedOver
    }
    return try room.move(name!, from: .waiting, to: .running, in: home) ? .entered : .passedOver
  }

  /// Repeats a removal: a remaining file would block waiters, so a single error of the system is
  /// not enough to give up.
  private func retrying<Result>(_ body: () throws(Errno) -> Result) throws(Errno) -> Result {
    for _ in 0..<2 {
      if let result = try? body() { return result }
    }
    return try body()
  }

  private func removeOwn() throws(Errno) -> AccessMachine<AccessName>.Event {
    endWaiting()
    let home = try open()
    guard let name, let place = machine.place else { return .left }
    if leavesHidden { room.leave(name) }
    // The file may have been moved forward, or to `passed/`, by another process.
    for current in AccessPlace.allCases where current.rawValue >= place.rawValue {
      if try removeOwn(name, from: current, in: home) {
        return current == place ? .left : .superseded
      }
    }
    guard place == .waiting else { return .superseded }
    if !leavesHidden { try room.forgetPassed(name, in: home) }
    return .left
  }

  /// Returns whether the file was in the directory; the file stays as long as its hidden
  /// directories exist.
  private func removeOwn(
    _ name: AccessName, from place: AccessPlace, in home: AccessHome
  ) throws(Errno) -> Bool {
    var isRemoved = leavesHidden && (try? room.keep(name, from: place, in: home)) == true
    if !isRemoved { isRemoved = try room.remove(name, from: place, in: home) }
    if isRemoved { room.bell.noteEnd(of: name) }
    return isRemoved
  }
}
