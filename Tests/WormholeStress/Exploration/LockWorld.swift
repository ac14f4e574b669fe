import WormholeContainerStorage

/// A model of one channel's directory, in which processes change the value.
///
/// Each process runs the same ``LockMachine`` as the executor, over names, inodes, open descriptors
/// and flocks in memory. Every call that other processes could observe is a step of its own. A
/// process that is not chosen is a suspended process, for as long as the suspension lasts; any
/// process may die between two steps. The lease has no length: a waiter may find at any time that
/// the heartbeat has stopped. So the model contains every order to which heartbeats, renewals and
/// clocks could lead, and more.
///
/// Names reach the disk in the order of their changes; contents reach the disk when synced, or at
/// any time that the system chooses. So a power cut leaves the names of any moment since the latest
/// sync of the directory, and each unsynced content either whole or damaged. All these outcomes are
/// checked in every state.
///
/// Schedules run the executor itself, with two processes and two preemptions. The model stays for a
/// third process, for two generations in a row, for a death or suspension between any two steps,
/// and for the power cuts: no schedule has these.
struct LockWorld: ModelWorld {
  struct Rules {
    var processes = 2
    var updates = 1
    var generations = 3
    var deaths = 1
    /// Whether a synced value exists at the start.
    var hasValue = false
    /// Whether changes must survive a power cut: each change may or may not, or none must.
    var hasPower = true
    /// The disabled mechanisms.
    var mutant: Mutants?
    /// Whether the previous value is stored only after the new value has its name.
    var keepsLate = false
    /// How often each process may save a value that it has committed without a sync.
    var saves = 0
  }

  /// A file with a value; its content distinguishes the file from every other file with a name.
  struct File: Hashable {
    let content: Int8
    let writer: Int8
    /// Whether the file is marked as synced before it got its name.
    var isMarked = false
    var isSynced = false
  }

  /// `lock/<g>.d`, by the content of its inode.
  struct Staging: Hashable {
    var next: File?
    var kept: File?
    var save: File?

    var isEmpty: Bool { next == nil && kept == nil && save == nil }
  }

  /// The files to which the names of the channel's directory lead.
  struct Names: Hashable {
    var value: File?
    var kept: File?
  }

  /// All mutable state.
  struct State: Hashable {
    /// The holder of the flock of each generation.
    var owners: [Int8]
    /// The inode under the name `<g>.d`; 0: none.
    var directories: [Int8]
    /// The content of each inode; nil: the directory was removed, and no file can be made inside.
    var inodes: [Staging?] = [nil]
    var names = Names()
    /// The names that the disk may contain: the names at the latest sync, and all later names.
    var onDisk: [Names]
    /// The latest content that was the previous value.
    var newestKept: Int8 = 0
    /// The latest change that was reported to survive a power cut.
    var promised: Int8 = 0
    var deaths: Int8
    var processes: [Process]
    var violation: Broken?
  }

  enum Broken: String, Hashable {
    case overwritten = "a change overwrote a value without reading it"
    case gone = "the channel has lost its value"
    case backwards = "an older value has replaced the previous value"
  }

  static let absent: Int8 = -2
  static let free: Int8 = -1

  let rules: Rules
  var state: State

  init(_ rules: Rules) {
    self.rules = rules
    var names = Names()
    if rules.hasValue {
      names.value = File(content: 1, writer: -1, isMarked: true, isSynced: true)
    }
    state = State(
      owners: [Self.absent, Self.free]
        + Array(repeating: Self.absent, count: rules.generations - 1),
      directories: Array(repeating: 0, count: rules.generations + 1),
      names: names, onDisk: [names], deaths: Int8(rules.deaths),
      processes: Array(
        repeating: Process(updates: Int8(rules.updates), saves: Int8(rules.saves)),
        count: rules.processes))
  }

  static func == (left: LockWorld, right: LockWorld) -> Bool { left.state == right.state }
  func hash(into hasher: inout Hasher) { hasher.combine(state) }

  var violation: String? { state.violation?.rawValue }

  var isOver: Bool { state.processes.allSatisfy(\.isDone) }

  /// Checks that each change is in the value, once: the changes that were made, and perhaps the
  /// changes of dead processes.
  var verdict: String? {
    let sure = state.processes.reduce(0) { $0 + Int($1.committed) }
    let sum = Int(state.names.value?.content ?? 0) - (rules.hasValue ? 1 : 0)
    let most = sure + rules.deaths - Int(state.deaths)
    return sum >= sure && sum <= most ? nil : "\(sure) changes were made, and \(sum) are there"
  }

  var cuts: (count: Int, violation: String?) {
    guard rules.hasPower else { return (0, nil) }
    var count = 0
    for names in state.onDisk {
      guard let value = names.value else {
        count += 1
        if state.promised > 0 { return (count, "after a power cut there is no value") }
        continue
      }
      // The content counts once whole, and once damaged, if both are possible.
      count += 1
      if value.content < state.promised {
        return (count, "a power cut undoes a change that was said to outlive it")
      }
      if value.isSynced { continue }
      count += 1
      guard state.promised > 0 || names.kept != nil else { continue }
      guard let kept = names.kept, kept.isSynced, kept.content >= state.promised else {
        return (count, "after a power cut the value is damaged, and what is kept is too old")
      }
    }
    return (count, nil)
  }

  func exists(_ generation: Int) -> Bool {
    generation < state.owners.count && state.owners[generation] != Self.absent
  }

  /// Returns a free inode number: states that differ only in inode numbers become equal.
  mutating func makeInode() -> Int8 {
    let free = state.inodes.indices.dropFirst().first { inode in
      state.inodes[inode] == nil
        && !state.processes.contains {
          $0.staging == Int8(inode) || $0.removing == Int8(inode)
        }
    }
    if let free {
      state.inodes[free] = Staging()
      return Int8(free)
    }
    state.inodes.append(Staging())
    return Int8(state.inodes.count - 1)
  }

  /// Records a changed name of the channel's directory.
  mutating func rename(_ body: (inout Names) -> Void) {
    let had = state.names.value != nil
    body(&state.names)
    if had, state.names.value == nil { state.violation = .gone }
    if let kept = state.names.kept {
      if kept.content < state.newestKept { state.violation = .backwards }
      state.newestKept = max(state.newestKept, kept.content)
    }
    if rules.hasPower, state.onDisk.last != state.names { state.onDisk.append(state.names) }
  }
}
