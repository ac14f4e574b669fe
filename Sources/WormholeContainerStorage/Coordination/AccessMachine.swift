/// The state machine of an access to files that several processes may use: from its arrival to its
/// end.
///
/// An access is a file under a name that is never used twice. The directory of the file is the
/// state of the access: `waiting/`, `running/`, and `overtaken/` if the running access was
/// suspended and another access took over. The file moves in this direction only, by renaming, and
/// every process lists the directories in the same order. A listing is not a snapshot, but because
/// of the order it misses no access that exists throughout.
///
///     lock       take the lock of arrivals
///     list       list the three directories; the conflicting accesses are the *blockers*
///     arrive     rename the own file from `lock/<g>.d` to `waiting/`, with a stamp above all
///                listed ones. If the directory is gone, the lock was overtaken: unlock and
///                start again. Without blockers the file goes to `running/` at once and `enter`
///                is skipped, unless the access has to `hide` first
///     unlock     the steps below need no lock
///     watch      if there are blockers: watch for their ends
///     look       check the last blocker: an access that has ended or is dead no longer blocks. If
///                several of the last blockers have ended, all of these are dropped at once
///     sleep      until a notice arrives; then check again
///     hide       to replace a file: make a hidden directory beside it
///     enter      rename the own file to `running/`; if gone, the access was skipped: start again
///     run        the caller's code
///     commit     exchange the new file in the hidden directory with the file
///     leave      unlink the own file
///
/// A blocker whose process has not run for a lease is treated as follows:
///
///     pass       a waiting blocker is renamed to `passed/`, where it blocks no access: it has not
///                started, and it arrives again when its process resumes
///     take       a running blocker is renamed to `overtaken/`, if the caller permits a takeover;
///     clear      its hidden directory is fenced. Without the permission the access ends, and
///                the error names the blocker.
///
/// Why two conflicting accesses never run at once, whichever process is suspended, resumed or
/// killed, and whenever:
///
/// - Of two accesses, the second arrives later: under the lock, or with a rename that fails. The
///   later access has the earlier one in its listing and waits until the earlier one is gone. No
///   blocker is ever added.
/// - A skipped access cannot enter: its rename fails, because the name is gone.
/// - An overtaken access remains a blocker for every access that does not permit a takeover.
///
/// Why an overtaken access that replaces a file changes nothing: its hidden directory was made
/// before the access entered. A process that overtakes the access first moves the content out of
/// the directory, by one rename for each file, and then removes the empty directory: nothing can be
/// renamed out of a removed directory. If the owner fills the directory in the meantime, or nothing
/// proves that the access made the directory, `clear` fails, and the process does not overtake.
/// ``HiddenDirectory`` has the steps.
///
/// Why no access waits forever for later arrivals: all its blockers came earlier. Why no waiter
/// sleeps through the end of a blocker: a waiter starts to watch first, and checks the blocker
/// afterwards.
///
/// The file has only the order of the steps, without a system call: tests can explore its
/// interleavings. ``AccessExecutor`` carries the actions out.
package struct AccessMachine<Name: Hashable & Sendable>: Hashable, Sendable {
  /// The caller's requirements.
  package struct Terms: Hashable, Sendable {
    /// A hidden directory takes the new file.
    package var replaces = false
    /// The access overtakes running blockers that are suspended.
    package var takesOver = false

    package init() {}
  }

  /// The next step for the executor.
  package enum Action: Hashable, Sendable {
    /// Event: `locked`.
    case lock
    /// Event: `listed`, without the names of earlier events.
    case list(AccessPlace)
    /// Event: `arrived` or `lockLost`.
    case arrive(AccessPlace)
    /// Event: `unlocked`.
    case unlock
    /// Event: `watched`.
    case watch
    /// Event: `gone`, `ended`, `dead`, `stands` or `stoodStill`.
    case look(Name)
    /// Remove the files of a dead process's access. Event: `gone`.
    case bury(Name)
    /// Event: `gone`, or `moved` if the access is no longer in the directory.
    case pass(Name)
    /// Event: `taken`, or `moved` if the access is no longer in the directory.
    case take(Name, from: AccessPlace)
    /// Fence its hidden directory. Event: `cleared`.
    case clear(Name)
    /// Event: `woken` or `gaveUp`.
    case sleep
    /// Event: `hidden`.
    case hide
    /// Event: `unhidden`.
    case unhide
    /// Rename the own file from `waiting/` to `running/`. Event: `entered` or `passedOver`.
    case enter
    /// Event: `ran`.
    case run
    /// Event: `committed` or `superseded`.
    case commit
    /// Unlink the own file. Event: `left` or `superseded`.
    case leave
    case finish(AccessEnd)
  }

  /// The result of the last action.
  package enum Event: Hashable, Sendable {
    case begin
    case locked, arrived, lockLost, unlocked
    case listed([Name])
    case watched
    case gone, dead, stands, stoodStill(AccessPlace)
    /// The last blockers have ended, so many of them: at least the checked one.
    case ended(Int)
    case moved, taken, cleared
    case woken, gaveUp
    case hidden, unhidden
    case entered, passedOver
    case ran(commits: Bool)
    case committed, superseded
    case left
    /// A system call failed; the machine cleans up and ends.
    case failed
  }

  package enum AccessEnd: Hashable, Sendable {
    case done
    /// Another process overtook the running access.
    case superseded
    /// The wait ended: the deadline passed, or the wait was cancelled.
    case gaveUp
    /// The named access runs, its process is suspended, and the caller does not permit a takeover.
    case stopped(Name)
    case failed
  }

  /// Mechanisms that tests disable.
  package struct Flaws: OptionSet, Hashable, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    package static var listsBackwards: Flaws { Flaws(rawValue: 1 << 0) }
    package static var watchesLate: Flaws { Flaws(rawValue: 1 << 1) }
    package static var hidesLate: Flaws { Flaws(rawValue: 1 << 2) }
    package static var onlyTakerClears: Flaws { Flaws(rawValue: 1 << 3) }
    package static var nobodyClears: Flaws { Flaws(rawValue: 1 << 4) }
    package static var entersAnyway: Flaws { Flaws(rawValue: 1 << 5) }
    package static var dropsAll: Flaws { Flaws(rawValue: 1 << 6) }
  }

  package let terms: Terms
  /// The accesses that have to end first, each once; the last element is checked first.
  package private(set) var blockers: [Name] = []
  /// The directory of the own file; nil if the file is in none.
  package private(set) var place: AccessPlace?
  private var isHidden = false
  private var holdsLock = false
  package private(set) var wasSuperseded = false
  /// The new file is in its place: the commit came before any later takeover.
  private var hasCommitted = false
  /// The ending after the clean-up; nil to start again.
  private var ending: AccessEnd?

  package init(_ terms: Terms) { self.terms = terms }

  /// Returns the next action, given the event that followed the last action.
  package mutating func next(_ event: Event, after action: Action, flaws: Flaws = []) -> Action {
    switch (action, event) {
    case (_, .failed): return fail(at: action)
    case (_, .begin): return .lock
    case (.lock, _):
      holdsLock = true
      blockers = []
      return .list(flaws.contains(.listsBackwards) ? .overtaken : .waiting)
    case (.list(let place), .listed(let names)):
      blockers += names
      let step = flaws.contains(.listsBackwards) ? -1 : 1
      return AccessPlace(rawValue: place.rawValue + step).map { .list($0) }
        ?? .arrive(blockers.isEmpty && !terms.replaces ? .running : .waiting)
    case (.arrive(let first), .arrived):
      place = first
      return .unlock
    case (.arrive, _): return .unlock
    case (.unlock, _):
      holdsLock = false
      if let ending { return tidy(then: ending) }
      guard let place else { return .lock }
      if place == .running { return .run }
      if blockers.isEmpty { return prepare(flaws) }
      return flaws.contains(.watchesLate) ? lookAtNext(flaws) : .watch
    case (.watch, _): return flaws.contains(.watchesLate) ? .sleep : lookAtNext(flaws)
    case (.look(let name), _): return judge(name, event, flaws)
    case (.bury, _), (.pass, .gone), (.clear, _): return drop(flaws)
    case (.pass(let name), _): return .look(name)
    case (.take(let name, _), .taken):
      return flaws.contains(.nobodyClears) ? drop(flaws) : .clear(name)
    case (.take(let name, _), _): return .look(name)
    case (.sleep, .gaveUp): return tidy(then: .gaveUp)
    case (.sleep, _): return lookAtNext(flaws)
    case (.hide, _):
      isHidden = true
      return flaws.contains(.hidesLate) ? .run : .enter
    case (.enter, .entered): return goOn(flaws)
    case (.enter, _):
      if flaws.contains(.entersAnyway) { return goOn(flaws) }
      // The access was skipped: a new arrival follows, with a new name.
      return isHidden ? .unhide : .leave
    case (.run, .ran(let commits)):
      ending = .done
      if isHidden { return commits ? .commit : .unhide }
      return .leave
    case (.commit, _):
      (hasCommitted, wasSuperseded) = (event == .committed, event == .superseded)
      return .unhide
    case (.unhide, _):
      isHidden = false
      return .leave
    case (.leave, _): return finish(event)
    default: preconditionFailure("\(event) is not a result of \(action)")
    }
  }

  private mutating func judge(_ name: Name, _ event: Event, _ flaws: Flaws) -> Action {
    switch event {
    case .gone: return drop(flaws)
    case .ended(let count): return drop(flaws, flaws.contains(.dropsAll) ? blockers.count : count)
    case .dead: return .bury(name)
    case .stoodStill(.waiting): return .pass(name)
    case .stoodStill where !terms.takesOver: return tidy(then: .stopped(name))
    case .stoodStill(.overtaken):
      // The overtaking process may have been killed before clearing.
      let isCleared = !flaws.isDisjoint(with: [.onlyTakerClears, .nobodyClears])
      return isCleared ? drop(flaws) : .clear(name)
    case .stoodStill(let place): return .take(name, from: place)
    default: return flaws.contains(.watchesLate) ? .watch : .sleep
    }
  }

  /// Removes the last blockers: by default, the checked one.
  private mutating func drop(_ flaws: Flaws, _ count: Int = 1) -> Action {
    blockers.removeLast(count)
    return lookAtNext(flaws)
  }

  private func lookAtNext(_ flaws: Flaws) -> Action {
    blockers.last.map { .look($0) } ?? prepare(flaws)
  }

  private func prepare(_ flaws: Flaws) -> Action {
    terms.replaces && !flaws.contains(.hidesLate) ? .hide : .enter
  }

  private mutating func goOn(_ flaws: Flaws) -> Action {
    place = .running
    return terms.replaces && flaws.contains(.hidesLate) ? .hide : .run
  }

  private mutating func finish(_ event: Event) -> Action {
    place = nil
    guard let ending else {
      // The access was skipped: its knowledge of other accesses is old by now.
      return .lock
    }
    let isOver = wasSuperseded || event == .superseded && !hasCommitted
    return .finish(ending == .done && isOver ? .superseded : ending)
  }

  private mutating func tidy(then ending: AccessEnd) -> Action {
    self.ending = ending
    if holdsLock { return .unlock }
    if isHidden { return .unhide }
    return place == nil ? .finish(ending) : .leave
  }

  private mutating func fail(at action: Action) -> Action {
    switch action {
    case .unlock: holdsLock = false
    // A remaining hidden directory is left to the process that later removes the dead process's
    // accesses.
    case .unhide: isHidden = false
    case .leave:
      place = nil
      return .finish(.failed)
    default: break
    }
    return tidy(then: .failed)
  }
}

/// The directories of an access's file, in the order in which the file moves through them.
package enum AccessPlace: Int, Hashable, Sendable, CaseIterable {
  case waiting, running, overtaken

  package var name: String {
    switch self {
    case .waiting: "waiting"
    case .running: "running"
    case .overtaken: "overtaken"
    }
  }
}
