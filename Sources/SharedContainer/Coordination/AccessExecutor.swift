internal import Syscalls

/// What an access is to be.
package struct AccessRequest: Sendable {
  package let claim: AccessClaim
  /// What is replaced, without links.
  package var replaced: [AccessPath] = []
  /// Whether what nothing is made for stays as it is; else that is an error.
  package var mayMakeNothing = false
  /// Go past those that run once their processes have stood still for so long; nil: never.
  package var takeOver: Duration?
  /// What the caller calls it, for errors.
  package var subject: String
  /// The rooms in which those may wait that hold something here.
  package var others: @Sendable () -> [AccessRoom] = { [] }

  package init(_ claim: AccessClaim, subject: String) {
    self.claim = claim
    self.subject = subject
  }
}

/// Carries out what ``AccessMachine`` decides, for one access.
///
/// ``begin()`` returns when it may run, and ``end(commits:)`` gives it back: on whatever thread,
/// one after the other.
package final class AccessExecutor: @unchecked Sendable {
  // Used by one thread at a time: whoever has begun it ends it.
  var machine: AccessMachine<AccessName>
  private var action = AccessMachine<AccessName>.Action.lock
  var home: OpenDirectory?
  private var lock: LockExecutor?
  var process: AccessProcess?
  private var hiddenPaths: [String] = []
  /// What was made there could not be removed: its file is kept for whoever sweeps.
  private var leavesHidden = false
  var rings = 0
  var isWaiting = false
  private var seen: Set<AccessName> = []
  /// Nobody has arrived since this process has looked and found nobody.
  private var isAlone = false
  private var highest = UInt64(0)
  var failure: WormholeError?
  var files: [HiddenFileBox] = []
  private(set) var name: AccessName?

  let room: AccessRoom
  var held: [AccessToken] = []
  package let request: AccessRequest
  let patience: Patience

  var container: Container { room.container }
  static var operation: String { "coordinate" }

  /// Where the new files are to be made, in the order of what is replaced.
  package var newPaths: [String] { files.map { $0.file.path } }

  package init(_ room: AccessRoom, _ request: AccessRequest, _ patience: Patience) {
    self.room = room
    self.request = request
    self.patience = patience
    var terms = AccessMachine<AccessName>.Terms()
    terms.replaces = !request.replaced.isEmpty
    terms.takesOver = request.takeOver != nil
    machine = AccessMachine(terms)
  }

  /// Which one it is; once it has begun.
  package var token: AccessToken {
    AccessToken(container: container.id, name: name?.text ?? "")
  }

  /// Whether nobody has gone past it.
  package var stands: Bool {
    guard let home, let name else { return false }
    return (try? room.place(of: name, in: home, from: .running)) == .running
  }

  // MARK: From its arrival to its end

  /// Waits until it may run.
  ///
  /// - Parameter held: the accesses that the caller is inside of.
  package func begin(inside held: [AccessToken] = []) throws(WormholeError) {
    if name == nil { _ = try arrive(inside: held) }
    try advance()
  }

  /// Arrives, and waits for nobody; whether it may run.
  package func arrive(inside held: [AccessToken] = []) throws(WormholeError) -> Bool {
    self.held = held
    return try mayRun()
  }

  /// Whether it may run by now.
  package func mayRun() throws(WormholeError) -> Bool {
    try container.checkOwner(Self.operation, request.subject)
    if action == .sleep { action = machine.next(.woken, after: action) }
    try advance(toSleep: true)
    return action == .run
  }

  /// Gives it back.
  ///
  /// - Parameter commits: whether the new files are put in the place of the old ones.
  /// - Throws: ``WormholeError/Code-swift.struct/superseded`` if others went past it.
  package func end(commits: Bool) throws(WormholeError) {
    _ = try settle(commits: commits)
    try leave()
  }

  /// Does what is left to do before others may go on: they are kept away until ``leave()``.
  ///
  /// - Parameter commits: whether the new files are put in the place of the old ones.
  /// - Returns: whether that was done.
  package func settle(commits: Bool) throws(WormholeError) -> Bool {
    // In a copy of the process it is the other one's.
    try container.checkOwner(Self.operation, request.subject)
    action = machine.next(.ran(commits: commits), after: .run)
    try advance(toLeave: true)
    return failure == nil && !machine.wasSuperseded
  }

  /// Gives it back, once it has settled.
  ///
  /// - Throws: what went wrong since it has run.
  package func leave() throws(WormholeError) { try advance() }

  /// Goes on to where the caller is needed.
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
        } catch let error as WormholeError {
          fail(error)
          event = .failed
        } catch {
          if error as? Errno == .noSuchFile { room.lookAtDirectories() }
          fail(
            (error as? Errno).map { WormholeError($0, Self.operation, request.subject) }
              ?? WormholeError(.system, Self.operation, request.subject, because: "\(error)"))
          event = .failed
        }
        if event == .failed, case .leave = action, let name { room.leave(name) }
        action = machine.next(event, after: action)
      }
    }
  }

  private func fail(_ error: WormholeError) {
    if failure == nil { failure = error }
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
      try room.discard(name, in: open())
      return .gone
    case .pass(let name):
      return try room.pass(name, in: open()) ? .gone : .moved
    case .take(let name, let place): return try take(name, from: place)
    case .clear(let name): return try clear(name)
    case .sleep: return try sleep()
    case .hide: return try hide()
    case .unhide:
      defer { files = [] }
      leavesHidden = true
      for box in files { try retrying { () throws(Errno) in try box.file.remove() } }
      leavesHidden = false
      return .unhidden
    case .enter:
      endWaiting()
      return try room.move(name!, from: .waiting, to: .running, in: open())
        ? .entered : .passedOver
    case .commit: return try commit()
    case .leave: return try retrying { () throws(Errno) in try removeOwn() }
    case .run, .finish: preconditionFailure("\(action) is the caller's")
    }
  }

  func open() throws(Errno) -> OpenDirectory {
    guard let home else { throw .noSuchFile }
    return home
  }

  // MARK: Arriving

  private func takeLock() throws -> AccessMachine<AccessName>.Event {
    let slot = room.slot
    guard slot.turns.take(patience, now: container.options.environment.now) else { throw tooLate() }
    slot.lookAtName()
    var policy = LockPolicy(lease: container.options.lease, cap: container.options.cap)
    policy.asksWhoWasLast = true
    var lock = LockExecutor(slot, policy, patience, Self.operation)
    var next = lock.advance(.begin)
    if next == .run, lock.beginAnewIfMoved() { next = lock.advance(.begin) }
    guard next == .run else {
      room.isEmpty = false
      slot.turns.giveBack()
      var error = lock.failure ?? tooLate()
      error.subject = request.subject
      throw error
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
    // What was found in an earlier turn says nothing after this one, whose mark is now the last:
    // it may end without a look, and others may have come before it.
    if !Mutants.has(.keepOldFinding) { room.isEmpty = isAlone }
    return .locked
  }

  /// Lets others see that this process lives and runs.
  private func show(in home: OpenDirectory) throws(Errno) {
    self.home = home
    room.removeLeft(in: home)
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
    for name in try room.names(in: place, of: home) {
      highest = max(highest, name.stamp)
      guard seen.insert(name).inserted,
        let entry = try room.entry(of: name, in: place, of: home),
        entry.claim.conflicts(with: request.claim)
      else { continue }
      blockers.append(name)
    }
    // Those that run are listed after those that wait, so the last one is whoever runs longest.
    return .listed(blockers.sorted { $0.stamp > $1.stamp })
  }

  private func arrive(_ place: AccessPlace) throws -> AccessMachine<AccessName>.Event {
    room.keepKnown(seen)
    // Until it is known what has become of this one.
    room.isEmpty = false
    let home = try open()
    let clock = UInt64(clamping: container.options.environment.sinceBoot())
    let (above, overflow) = highest.addingReportingOverflow(1)
    guard !overflow, let process, let lock else { throw Errno.invalidArgument }
    let name = AccessName(
      stamp: max(clock, above), process: process.name, number: process.nextNumber())
    hiddenPaths = request.replaced.enumerated().map { index, target in
      HiddenFile.path(beside: target, name, index)
    }
    let entry = AccessEntry(claim: request.claim, held: held, hidden: hiddenPaths)
    let bytes = try encoded(entry)
    let staging = lock.staging
    do throws(Errno) {
      try stage(bytes, in: staging.descriptor)
      try staging.descriptor.rename(
        "next", to: home.descriptor, place.name + "/" + name.text)
    } catch {
      guard error == .noSuchFile, lock.staging.isStale else { throw error }
      lock.forgetStaging()
      return .lockLost
    }
    self.name = name
    room.isEmpty = seen.isEmpty
    // It may wait for long, beside thousands of others.
    seen = []
    return .arrived
  }

  private func encoded(_ entry: AccessEntry) throws -> [UInt8] {
    let bytes = try entry.encoded()
    guard bytes.count <= AccessEntry.largestFile else {
      throw WormholeError(
        .tooLarge, Self.operation, request.subject,
        because: "what it names takes \(bytes.count) bytes, and the limit is "
          + "\(AccessEntry.largestFile)")
    }
    return bytes
  }

  /// Writes it where only whoever has the lock can be.
  private func stage(_ bytes: [UInt8], in staging: borrowing Descriptor) throws(Errno) {
    let file = try makeNext(in: staging)
    let mode = container.options.sharing.fileMode
    if mode != 0o600 { try file.setMode(mode) }
    var failure: Errno?
    bytes.withUnsafeBytes { bytes in
      failure = Errno.of { () throws(Errno) in try file.writeFully(bytes) }
    }
    if let failure { throw failure }
  }

  private func makeNext(in staging: borrowing Descriptor) throws(Errno) -> Descriptor {
    do throws(Errno) {
      return try staging.open("next", .writeOnlyNew, mode: 0o600)
    } catch {
      guard error == .fileExists else { throw error }
      // One that died here has left something: another user, it may be, whose file is still for
      // nobody else.
      try empty(staging)
      return try staging.open("next", .writeOnlyNew, mode: 0o600)
    }
  }

  private func giveLockBack() {
    guard var lock else { return }
    _ = lock.advance(.unchanged)
    self.lock = nil
    room.slot.turns.giveBack()
  }

  // MARK: Replacing, and leaving

  private func hide() throws -> AccessMachine<AccessName>.Event {
    for (target, path) in zip(request.replaced, hiddenPaths) {
      do throws(Errno) {
        files.append(HiddenFileBox(try HiddenFile(beside: target, at: path)))
      } catch {
        if let name {
          for path in hiddenPaths {
            let failure = Errno.of { () throws(Errno) in
              try retrying { () throws(Errno) in try HiddenFile.remove(path, of: name) }
            }
            if failure != nil { leavesHidden = true }
          }
        }
        files = []
        throw WormholeError(error, "make a place for the new file beside", target.text)
      }
    }
    return .hidden
  }

  private func commit() throws -> AccessMachine<AccessName>.Event {
    for (index, box) in files.enumerated() {
      switch try box.file.exchange() {
      case .exchanged: break
      case .superseded: return .superseded
      case .nothingMade:
        guard stands else { return .superseded }
        if request.mayMakeNothing { continue }
        throw WormholeError(
          .notFound, "replace", request.replaced[index].text,
          because: "nothing was made at the path that was given for the new file")
      }
    }
    return .committed
  }

  /// What is not removed stands in the way of others, so that one error of the system is not enough
  /// to leave it.
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
    if leavesHidden, (try? room.keep(name, from: place, in: home)) == true { return .left }
    if try room.remove(name, from: place, in: home) {
      return .left
    }
    // It went forward without this process, or was passed over.
    for later in AccessPlace.allCases where later.rawValue > place.rawValue {
      if try room.remove(name, from: later, in: home) { return .superseded }
    }
    guard place == .waiting else { return .superseded }
    try room.forgetPassed(name, in: home)
    return .left
  }
}

/// What cannot be copied, in an array.
final class HiddenFileBox: Sendable {
  let file: HiddenFile
  init(_ file: consuming HiddenFile) { self.file = file }
}
