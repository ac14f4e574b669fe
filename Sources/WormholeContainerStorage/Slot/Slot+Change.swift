internal import WormholePropertyLists
internal import WormholeSyscalls

/// The decision of the caller's code about a value.
package enum SlotChange: Sendable {
  case none
  /// The bytes of a binary property list; the note belongs to the caller, see ``Slot/note``.
  case put([UInt8], note: Int? = nil)
}

/// The outcome of a change that did not fail.
package enum ChangeOutcome: Sendable, Equatable { case committed, unchanged }

extension Slot {
  /// Reads the value under its lock, lets the body compute the next, and commits the result.
  ///
  /// If another process took the lock over in the meantime, the body may run again, on a newer
  /// value; its earlier result had no effect. If the body throws, nothing is changed. It runs on
  /// the caller's thread, and must not use another lock of the same container.
  ///
  /// - Parameter erasing: whether no previous value is retained.
  @discardableResult
  package func change(
    _ operation: String, durability: Durability = .process, policy: LockPolicy? = nil,
    patience: Patience = .unlimited, erasing: Bool = false, _ body: (Content) throws -> SlotChange
  ) throws -> ChangeOutcome {
    try changeKeepingOpen(
      operation, durability: durability, policy: policy, patience: patience, erasing: erasing, body
    ).outcome
  }

  /// As `change`, and returns the file of a commit if the file may stay open: see
  /// ``isLatest(_:)``.
  package func changeKeepingOpen(
    _ operation: String, durability: Durability = .process, policy: LockPolicy? = nil,
    patience: Patience = .unlimited, erasing: Bool = false, _ body: (Content) throws -> SlotChange
  ) throws -> (outcome: ChangeOutcome, file: CommittedFile?) {
    let verb = operation
    // Built only for an error.
    var operation: String { "\(verb) \(title)" }
    let policy = policy ?? container.policy
    var unsynced: Commit?
    var file: CommittedFile?
    let outcome = try holdingTurn(operation, patience) {
      var run = ChangeRun(self, LockExecutor(self, policy, patience, verb, title), durability)
      run.isErasing = erasing
      let outcome = try run.run(body)
      unsynced = run.unsynced
      if outcome == .committed { file = lockState.committed }
      return outcome
    }
    // Synced after the turn ends: waiting threads can commit in the meantime and share the next
    // sync.
    if let unsynced { try unsynced.syncName(operation) }
    return (outcome, file)
  }

  /// Makes the name of the present value durable, where a change finds that an earlier call has
  /// made the change, and perhaps could not sync it.
  ///
  /// Where the file system syncs no directory, the call succeeds without a sync: no repetition of a
  /// failed change could make the name durable.
  package func syncName(_ operation: String) throws(WormholeError) {
    guard let directory = try openDirectory(operation), !Mutants.has(.noDirectorySync) else {
      return
    }
    if let failure = directory.trySyncNames() { throw unsynced(operation, failure) }
  }

  /// The error of a change whose name could not be synced.
  func unsynced(_ operation: String, _ failure: Errno) -> WormholeError {
    WormholeError(
      .notDurable, operation, name,
      because: "the change is done, but the directory could not be synced: \(failure)",
      hint: "write the value again, because a power cut may undo the change", errno: failure)
  }

  /// The caller's note about the value that a change has found; nil if another process has written
  /// the value.
  ///
  /// With the note, the body of a change need not read a value that this process has written
  /// itself.
  package var note: Int? { lockState.committed?.note }

  func checkSize(of bytes: [UInt8], _ operation: @autoclosure () -> String) throws(WormholeError) {
    let limit = container.options.largestFile
    guard bytes.count > limit else { return }
    throw WormholeError(
      .tooLarge, operation(), name,
      because: "the value takes \(bytes.count) bytes, and the limit is \(limit)")
  }

  /// Waits in this process's own queue, and marks the thread as inside an update.
  func holdingTurn<Result>(
    _ operation: @autoclosure () -> String, _ patience: Patience, _ body: () throws -> Result
  ) throws -> Result {
    try container.checkOwner(operation(), name)
    guard isInnermost || !UpdatesUnderWay.isInside(container.identity) else {
      throw WormholeError(
        .nested, operation(), name,
        because: "the call was made inside an update of the same container",
        hint: "return from the update first, or update several channels in one call")
    }
    guard turns.take(patience) else {
      let cancelled = patience.cancellation?.isCancelled == true
      throw WormholeError(
        cancelled ? .cancelled : .timedOut, operation(), name,
        because: cancelled
          ? "the operation was cancelled"
          : "the deadline passed while another thread of the process held the lock")
    }
    defer { turns.giveBack() }
    lookAtName()
    return try body()
  }
}

/// A change, from finding the lock to its release.
private struct ChangeRun {
  let slot: Slot
  var executor: LockExecutor
  let durability: Durability
  var isErasing = false
  private var pending: [UInt8] = []
  private var note: Int?
  private var old = FoundFile.missing
  private var retired: CommittedFile?
  /// The commit, if its name is synced after the turn.
  private(set) var unsynced: Commit?
  private var bodyError: (any Error)?

  init(_ slot: Slot, _ executor: LockExecutor, _ durability: Durability) {
    self.slot = slot
    self.executor = executor
    self.durability = durability
  }

  mutating func run(_ body: (Slot.Content) throws -> SlotChange) throws -> ChangeOutcome {
    var action = executor.advance(.begin)
    while true {
      switch action {
      case .run: action = executor.advance(compute(body))
      case .commit: action = executor.advance(commit())
      case .finish(let ending): return try conclude(ending)
      default: preconditionFailure("the lock stopped at \(action)")
      }
    }
  }

  private mutating func compute(
    _ body: (Slot.Content) throws -> SlotChange
  ) -> LockMachine.Event {
    let directory = executor.directory
    do {
      let content: Slot.Content
      if let known = executor.known() {
        (old, content) = (known, try slot.content(of: known, in: directory, executor.operation))
      } else {
        if executor.beginAnewIfMoved() { return .begin }
        (old, content) = try slot.findForChange(in: directory, executor.operation)
      }
      let change = try UpdatesUnderWay.inside(slot.container.identity) { try body(content) }
      guard case .put(let bytes, let note) = change else { return .unchanged }
      try slot.checkSize(of: bytes, executor.operation)
      (pending, self.note) = (bytes, note)
      return .changed
    } catch {
      bodyError = error
      return .failed
    }
  }

  private mutating func commit() -> LockMachine.Event {
    let late = Mutants.has(.openStagingLate) ? executor.openStagingLate() : nil
    var commit = Commit(
      slot, executor.directory, staging: late ?? executor.staging, old: old, durability)
    commit.isErasing = isErasing
    do throws(Errno) {
      let outcome = try commit.run(pending, note)
      let wasCapped = executor.endTenure()
      switch outcome {
      case .committed:
        retired = executor.keep(commit.staged)
        if commit.syncsName { unsynced = commit }
        slot.noteUnsaved(commit.unsaved)
        guard let failure = commit.eraseOld() else { return .committed }
        executor.fail(
          WormholeError(
            .partlyDone, executor.operation, slot.name,
            because: "the change is done, but the previous value can still be read: "
              + "\(failure)",
            hint: "repeat the operation", errno: failure))
        return .failed
      case .superseded:
        slot.container.count { $0.reruns += 1 }
        executor.forgetStaging()
        if executor.beginAnewIfRemoved() { return .begin }
        return wasCapped ? .outlasted : .superseded
      }
    } catch {
      executor.fail(error)
      return .failed
    }
  }

  private func conclude(_ ending: LockEnd) throws -> ChangeOutcome {
    switch ending {
    case .unchanged:
      return .unchanged
    case .committed:
      return .committed
    case .superseded:
      throw WormholeError(
        .superseded, executor.operation, slot.name,
        because: "another process took over the lock during the update",
        hint: "make the update shorter, or the lease longer")
    case .gaveUp, .failed:
      if let bodyError { throw bodyError }
      throw executor.loss
    }
  }

}

/// The enclosing updates of a thread's code: another lock of the same container, taken there, could
/// wait for itself.
///
/// Each record is on the thread's stack as long as its body runs, and points to the enclosing
/// record.
package struct UpdatesUnderWay {
  private let container: FileIdentity
  /// An update of the parent process does not enclose code in a forked child.
  private let owner = ProcessCopy.current
  private let outer: UnsafeRawPointer?

  private init(_ container: FileIdentity, outer: UnsafeRawPointer?) {
    self.container = container
    self.outer = outer
  }

  /// Whether this thread is inside an update of any container.
  package static var isInsideAny: Bool { isInside(nil) }

  /// - Parameter container: nil for any container.
  static func isInside(_ container: FileIdentity?) -> Bool {
    var next = Thread.mark
    while let update = next?.assumingMemoryBound(to: Self.self).pointee {
      if container == nil || update.container == container, update.owner.isCurrent { return true }
      next = update.outer
    }
    return false
  }

  static func inside<Result>(
    _ container: FileIdentity, _ body: () throws -> Result
  ) rethrows -> Result {
    let outer = Thread.mark
    return try withUnsafePointer(to: Self(container, outer: outer)) { update in
      Thread.mark = UnsafeRawPointer(update)
      defer { Thread.mark = outer }
      return try body()
    }
  }
}
