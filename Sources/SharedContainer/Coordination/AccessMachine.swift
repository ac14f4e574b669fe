/// One access to files that others may use too: from its arrival to its end.
///
/// An access is a file under a name that is never used twice. Where the file lies says how far it
/// is: in `waiting/`, in `running/`, and in `overtaken/` if it was stopped there and others went
/// on. It goes in this direction only, by renaming, and whoever lists
/// the directories does so in this order: so a listing, which is no snapshot, misses nobody who is
/// there throughout.
///
///     lock       take the lock of arrivals
///     list       list the three directories; the conflicting ones are the *blockers*
///     arrive     rename the own file from `lock/<g>.d` to `waiting/`, with a stamp above all seen;
///                if the directory is gone the lock was overtaken: unlock and begin again. If
///                there are no blockers it goes to `running/` at once, and need not `enter`,
///                unless it has to `hide` first
///     unlock     from here on nobody needs the lock
///     watch      if there are blockers: have their ends told
///     look       look at each blocker: one that is gone or dead blocks no more
///     sleep      until something has happened; then look again
///     hide       to replace a file: make a hidden directory beside it
///     enter      rename the own file to `running/`; if it is gone it was passed over: begin again
///     run        the caller's code
///     commit     exchange what lies in the hidden directory with the file
///     leave      unlink the own file
///
/// and a blocker whose process has not run for a lease
///
///     pass       is renamed to `passed/`, if it waits, where it blocks nobody: it has not begun,
///                and comes again when it wakes
///     take       is renamed to `overtaken/`, if it runs and the caller has asked for that; its
///     clear      hidden directory is removed. If the caller has not asked, it is told who it is.
///
/// Why no two that conflict run at once, whenever anybody is stopped, continued or killed:
///
/// - Of two, one arrives later: under the lock, or with a rename that fails. It sees the other
///   in its listing and waits until that one is gone. The blockers only become fewer.
/// - Whoever is passed over cannot enter any more, as the name is gone that it would rename.
/// - One that is overtaken stays a blocker for all who have not asked to overtake.
///
/// Why a replacing one that was overtaken changes nothing: its hidden directory was made before it
/// entered. Whoever goes past it removes that first, and out of a removed directory nothing can be
/// renamed.
///
/// Why nobody waits for ever for those that come later: the blockers came earlier. Why nobody
/// sleeps through the end of a blocker: it looks after it has begun to watch.
///
/// This file is the order of things alone, without a system call, so that tests can walk through
/// its interleavings. ``AccessExecutor`` carries the actions out.
package struct AccessMachine<Name: Hashable & Sendable>: Hashable, Sendable {
  /// What the caller wants.
  package struct Terms: Hashable, Sendable {
    /// A hidden directory takes the new file.
    package var replaces = false
    /// It goes past those that run and are stopped.
    package var takesOver = false

    package init() {}
  }

  /// What is to be done next.
  package enum Action: Hashable, Sendable {
    /// Answer: `locked`.
    case lock
    /// Answer: `listed`, with none that was answered before.
    case list(AccessPlace)
    /// Answer: `arrived` or `lockLost`.
    case arrive(AccessPlace)
    /// Answer: `unlocked`.
    case unlock
    /// Answer: `watched`.
    case watch
    /// Answer: `gone`, `dead`, `stands` or `stoodStill`.
    case look(Name)
    /// Remove what a dead one left. Answer: `gone`.
    case bury(Name)
    /// Answer: `gone`, or `moved` if it is not there any more.
    case pass(Name)
    /// Answer: `taken`, or `moved` if it is not there any more.
    case take(Name, from: AccessPlace)
    /// Remove its hidden directory. Answer: `cleared`.
    case clear(Name)
    /// Answer: `woken` or `gaveUp`.
    case sleep
    /// Answer: `hidden`.
    case hide
    /// Answer: `unhidden`.
    case unhide
    /// Rename the own file from `waiting/` to `running/`. Answer: `entered` or `passedOver`.
    case enter
    /// Answer: `ran`.
    case run
    /// Answer: `committed` or `superseded`.
    case commit
    /// Unlink the own file. Answer: `left` or `superseded`.
    case leave
    case finish(Ending)
  }

  /// What came of the last action.
  package enum Event: Hashable, Sendable {
    case begin
    case locked, arrived, lockLost, unlocked
    case listed([Name])
    case watched
    case gone, dead, stands, stoodStill(AccessPlace)
    case moved, taken, cleared
    case woken, gaveUp
    case hidden, unhidden
    case entered, passedOver
    case ran(commits: Bool)
    case committed, superseded
    case left
    /// A system call failed; the machine tidies up and ends.
    case failed
  }

  package enum Ending: Hashable, Sendable {
    case done
    /// Others went past it while it ran.
    case superseded
    /// The wait ended: time was up, or it was cancelled.
    case gaveUp
    /// This one runs, its process is stopped, and the caller has not asked to overtake.
    case stopped(Name)
    case failed
  }

  /// Mechanisms that tests take out.
  package struct Flaws: OptionSet, Hashable, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    package static var listsBackwards: Flaws { Flaws(rawValue: 1 << 0) }
    package static var watchesLate: Flaws { Flaws(rawValue: 1 << 1) }
    package static var hidesLate: Flaws { Flaws(rawValue: 1 << 2) }
    package static var onlyTakerClears: Flaws { Flaws(rawValue: 1 << 3) }
    package static var nobodyClears: Flaws { Flaws(rawValue: 1 << 4) }
    package static var entersAnyway: Flaws { Flaws(rawValue: 1 << 5) }
  }

  package let terms: Terms
  /// Those that have to end first, each once; the last one is looked at first.
  package private(set) var blockers: [Name] = []
  /// Where the own file lies; nil: nowhere.
  package private(set) var place: AccessPlace?
  private var isHidden = false
  private var holdsLock = false
  package private(set) var wasSuperseded = false
  /// What it made is in its place: it came before whoever went past it since.
  private var hasCommitted = false
  /// What follows once all is tidied up; nil: begin again.
  private var ending: Ending?

  package init(_ terms: Terms) { self.terms = terms }

  /// Says what is to be done, now that this has come of the last action.
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
      // It was passed over: it comes again, with a new name.
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
    default: preconditionFailure("\(event) is no answer to \(action)")
    }
  }

  private mutating func judge(_ name: Name, _ event: Event, _ flaws: Flaws) -> Action {
    switch event {
    case .gone: return drop(flaws)
    case .dead: return .bury(name)
    case .stoodStill(.waiting): return .pass(name)
    case .stoodStill where !terms.takesOver: return tidy(then: .stopped(name))
    case .stoodStill(.overtaken):
      // Somebody went past it, and may have been killed before it was cleared.
      let isCleared = !flaws.isDisjoint(with: [.onlyTakerClears, .nobodyClears])
      return isCleared ? drop(flaws) : .clear(name)
    case .stoodStill(let place): return .take(name, from: place)
    default: return flaws.contains(.watchesLate) ? .watch : .sleep
    }
  }

  /// The one that was looked at is in the way no more.
  private mutating func drop(_ flaws: Flaws) -> Action {
    blockers.removeLast()
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
      // Passed over: what is known of the others is old by now.
      return .lock
    }
    let isOver = wasSuperseded || event == .superseded && !hasCommitted
    return .finish(ending == .done && isOver ? .superseded : ending)
  }

  private mutating func tidy(then ending: Ending) -> Action {
    self.ending = ending
    if holdsLock { return .unlock }
    if isHidden { return .unhide }
    return place == nil ? .finish(ending) : .leave
  }

  private mutating func fail(at action: Action) -> Action {
    switch action {
    case .unlock: holdsLock = false
    // What could not be removed is left for those who bury this process's accesses.
    case .unhide: isHidden = false
    case .leave:
      place = nil
      return .finish(.failed)
    default: break
    }
    return tidy(then: .failed)
  }
}

/// Where the file of an access may lie, in the order in which it goes through them.
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
