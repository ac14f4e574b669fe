internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The result of reading one name, as far as it distinguishes news from known content.
enum Stamp: Equatable, Sendable {
  case nothing
  case version(Int, Date, recovered: Bool)
  /// A version whose value has expired.
  case expired(Int, Date)
  case posted(Int)
  case reachability(Reachability)
  // Indirect, because each copy of a stamp would copy the parts of a profile or an error.
  indirect case member(Profile)
  indirect case failed(WormholeError)

  /// Returns the known version after this reading; a failed reading does not change the version.
  fileprivate func version(after before: Int?) -> Int? {
    switch self {
    case .version(let version, _, _), .expired(let version, _): version
    case .failed: before
    case .nothing, .posted, .reachability, .member: nil
    }
  }
}

/// One watcher as a pure state machine: the names to read, and the handler or task to notify.
///
/// The machine stores names and no values. If a name changed several times before it was read, the
/// watcher reads the newest value; no backlog grows, however slow the watcher is. The methods
/// return the next action; the caller performs the action after it has released the lock.
///
/// The names are file names, which are ASCII. Two channel names that look the same, and are equal
/// as strings, are two file names.
///
/// A watcher has a handler, or a task waits now and then. It reads if a name has changed *and*
/// there is a handler or a waiting task.
struct WatchMachine<Waiter> {
  enum Action {
    case none
    /// Read the changed names.
    case look
    /// The watcher has ended: resume the waiting task.
    case end(Waiter)

    var isLook: Bool { if case .look = self { true } else { false } }
  }

  let hasHandler: Bool
  private let reportsAbsence: Bool
  private(set) var isStopped = false
  /// The number of change notices.
  private(set) var signals = 0
  private var names: [Name] = []
  private var indices = SmallDictionary<String, Int>()
  /// The indices of forgotten names.
  private var free: [Int] = []
  /// The indices of changed names, and how many of them have been read.
  private var changed: [Int] = []
  private var lookedAt = 0
  /// Whether only the final error is still to come, and whether the error was reported.
  private var isFailing = false
  private var hasFailed = false
  private var isLooking = false
  private var waiter: Waiter?

  private struct Name {
    let text: String
    var seen: Stamp? {
      didSet { version = seen?.version(after: version) }
    }
    /// The version that was read last, also if a later reading has failed.
    var version: Int?
    var isChanged = false

    init(text: String) { self.text = text }
  }

  /// - Parameters:
  ///   - seen: the stamps that count as known from the beginning.
  ///   - reportsAbsence: whether it is news that a name has no file.
  init(hasHandler: Bool, seen: [String: Stamp] = [:], reportsAbsence: Bool = false) {
    self.hasHandler = hasHandler
    self.reportsAbsence = reportsAbsence
    for (name, stamp) in seen { names[index(of: name)].seen = stamp }
  }

  private mutating func index(of name: String) -> Int {
    if let known = indices[name] { return known }
    let index = free.popLast() ?? names.count
    if index == names.count {
      names.append(Name(text: name))
    } else {
      names[index] = Name(text: name)
    }
    indices[name] = index
    return index
  }

  /// Records that a name may have changed.
  mutating func change(_ name: String) -> Action {
    guard !isStopped, !isFailing else { return .none }
    signals += 1
    let index = index(of: name)
    if !names[index].isChanged {
      names[index].isChanged = true
      changed.append(index)
    }
    return beginIfWanted()
  }

  /// Registers a task that waits for news.
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

  /// Returns the name to read; nil if the watcher has been stopped.
  mutating func nextName() -> String? {
    guard !isStopped, lookedAt < changed.count else { return nil }
    let index = changed[lookedAt]
    lookedAt += 1
    // Even a watcher with a constant backlog stores only the waiting names.
    if lookedAt == changed.count || lookedAt >= 64 && lookedAt * 2 >= changed.count {
      changed.removeFirst(lookedAt)
      lookedAt = 0
    }
    // Before reading: a change from now on causes another reading.
    names[index].isChanged = false
    return names[index].text
  }

  /// Returns the version that the watcher knows of a name; nil if it knows none.
  func version(of name: String) -> Int? { indices[name].flatMap { names[$0].version } }

  /// Returns whether the result of a reading is news.
  mutating func isNews(_ name: String, _ stamp: Stamp) -> Bool {
    guard !isStopped else { return false }
    let index = index(of: name)
    guard names[index].seen != stamp else { return false }
    names[index].seen = stamp
    return stamp != .nothing || reportsAbsence
  }

  /// Forgets a name whose source was left; a name that has changed meanwhile, at its next reading.
  mutating func forget(_ name: String) {
    guard let index = indices[name] else { return }
    names[index].seen = nil
    forgetUnknown(name)
  }

  /// Forgets a name without a source, unless a stamp of the name is known.
  ///
  /// A watch that begins knows stamps before it has sources.
  mutating func forgetUnknown(_ name: String) {
    guard let index = indices[name], names[index].seen == nil, !names[index].isChanged else {
      return
    }
    names[index] = Name(text: "")
    indices[name] = nil
    free.append(index)
  }

  /// Takes the waiting task, which is resumed now.
  mutating func takeWaiter() -> Waiter? { waiter.take() }

  /// Records the end of a reading and of the resulting calls.
  mutating func endLook() -> Action {
    isLooking = false
    return isStopped ? .none : beginIfWanted()
  }

  /// Records the end of the container: the watcher reports the error, and afterwards nothing more.
  mutating func fail() -> Action {
    guard !isStopped, !isFailing else { return .none }
    isFailing = true
    forgetChanges()
    return beginIfWanted()
  }

  /// Returns whether to report the final error, which happens once.
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
