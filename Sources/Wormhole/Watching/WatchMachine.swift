internal import FoundationEssentials
internal import SharedContainer

/// What a look at one name found, as far as it matters for telling news from what is known.
enum Stamp: Equatable, Sendable {
  case nothing
  case version(Int, Date, recovered: Bool)
  case posted(Int)
  case reachability(Wormhole.Reachability)
  case member(Wormhole.Profile)
  case failed(WormholeError)
}

/// One watcher, as a pure state machine: which names it has to look at, and whom it tells.
///
/// It keeps names and no values: of what changed several times before it came to look, it sees the
/// newest, and nothing piles up however slow it is. Its methods say what is to be done; whoever
/// holds it does that after having let go of the lock.
///
/// The names are those of files, which are ASCII: two names that people cannot tell apart, and that
/// are equal as strings, are two.
///
/// A watcher has a handler, or somebody waits now and then. It looks when there is something to
/// look at *and* somebody to tell.
struct WatchMachine<Waiter> {
  enum Action {
    case none
    /// Look at what has changed.
    case look
    /// It has ended: tell the one that waits.
    case end(Waiter)

    var isLook: Bool { if case .look = self { true } else { false } }
  }

  let hasHandler: Bool
  private(set) var isStopped = false
  /// How often it was told that something may have changed.
  private(set) var signals = 0
  private var names: [Name] = []
  /// Where each name is, once there are many: to compare with few takes less time than to hash.
  private var places: [String: Int] = [:]
  /// The places of names that were forgotten.
  private var free: [Int] = []
  private static var few: Int { 8 }
  /// The places of those that have changed, and how many of them have been looked at.
  private var changed: [Int] = []
  private var lookedAt = 0
  /// Whether there is nothing more to come but the failure that ends it, and whether that was told.
  private var isFailing = false
  private var hasFailed = false
  private var isLooking = false
  private var waiter: Waiter?

  private struct Name {
    let text: String
    var seen: Stamp?
    var isChanged = false
  }

  /// - Parameter seen: what counts as known from the beginning.
  init(hasHandler: Bool, seen: [String: Stamp] = [:]) {
    self.hasHandler = hasHandler
    for (name, stamp) in seen { names[place(of: name)].seen = stamp }
  }

  private mutating func place(of name: String) -> Int {
    let known =
      names.count <= Self.few ? names.firstIndex { $0.text == name } : places[name]
    if let known { return known }
    if let place = free.popLast() {
      names[place] = Name(text: name)
      if names.count > Self.few { places[name] = place }
      return place
    }
    names.append(Name(text: name))
    if names.count == Self.few + 1 {
      for (place, name) in names.enumerated() { places[name.text] = place }
    } else if names.count > Self.few {
      places[name] = names.count - 1
    }
    return names.count - 1
  }

  /// Something may have happened to a name.
  mutating func change(_ name: String) -> Action {
    guard !isStopped, !isFailing else { return .none }
    signals += 1
    let place = place(of: name)
    if !names[place].isChanged {
      names[place].isChanged = true
      changed.append(place)
    }
    return beginIfWanted()
  }

  /// Somebody waits for news.
  mutating func wait(_ waiter: Waiter) -> Action {
    guard !isStopped, !hasFailed else { return .end(waiter) }
    precondition(self.waiter == nil, "two tasks wait for one iterator")
    self.waiter = waiter
    return beginIfWanted()
  }

  private mutating func beginIfWanted() -> Action {
    let isDue = lookedAt < changed.count || isFailing && !hasFailed
    guard !isLooking, isDue, hasHandler || waiter != nil else { return .none }
    isLooking = true
    return .look
  }

  /// The name to look at; nil if it has been stopped.
  mutating func nextName() -> String? {
    guard !isStopped, lookedAt < changed.count else { return nil }
    let place = changed[lookedAt]
    lookedAt += 1
    // Also of one that is always behind, no more is kept than waits.
    if lookedAt == changed.count || lookedAt >= 64 && lookedAt * 2 >= changed.count {
      changed.removeFirst(lookedAt)
      lookedAt = 0
    }
    // Before the look: what happens from now on asks for another one.
    names[place].isChanged = false
    return names[place].text
  }

  /// The version that it knows of a name; nil if it knows none.
  func version(of name: String) -> Int? {
    let place = names.count <= Self.few ? names.firstIndex { $0.text == name } : places[name]
    guard let place, case .version(let version, _, _) = names[place].seen else { return nil }
    return version
  }

  /// Whether what a look found is news.
  mutating func isNews(_ name: String, _ stamp: Stamp) -> Bool {
    guard !isStopped else { return false }
    let place = place(of: name)
    guard names[place].seen != stamp else { return false }
    names[place].seen = stamp
    return stamp != .nothing
  }

  /// Forgets a name that is not looked at any more, unless something may have happened to it.
  mutating func forget(_ name: String) {
    let place = place(of: name)
    guard !names[place].isChanged else { return }
    names[place] = Name(text: "")
    places[name] = nil
    free.append(place)
  }

  /// The one that waits, who is told now.
  mutating func takeWaiter() -> Waiter? { waiter.take() }

  /// A look has ended, and whatever it led to.
  mutating func endLook() -> Action {
    isLooking = false
    return isStopped ? .none : beginIfWanted()
  }

  /// What it watches has ended: whoever is told hears of that, and then of nothing more.
  mutating func fail() -> Action {
    guard !isStopped, !isFailing else { return .none }
    isFailing = true
    forgetChanges()
    return beginIfWanted()
  }

  /// Whether it is time to tell of the failure, which is done once.
  mutating func takeFailure() -> Bool {
    guard isFailing, !hasFailed, !isStopped else { return false }
    hasFailed = true
    return true
  }

  mutating func stop() -> Action {
    isStopped = true
    forgetChanges()
    return waiter.take().map { .end($0) } ?? .none
  }

  private mutating func forgetChanges() {
    changed = []
    lookedAt = 0
  }
}
