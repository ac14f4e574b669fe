import SharedContainer

/// A world of one channel's directory, in which processes change its value.
///
/// Each runs the very ``LockMachine`` that the executor runs, over names, inodes, open descriptors
/// and flocks in memory, where every call that others could see is a step of its own. A process
/// that is not chosen is a stopped one, for as long as that lasts; any may die between two steps.
/// The lease has no length: a waiter may find at any time that the mark has stood still, so every
/// order is there that marks, renewals and clocks could lead to, and more.
///
/// Names reach the disk in the order in which they changed, contents when they are synced or
/// whenever the system likes. So a power cut leaves the names of any moment since the latest sync
/// of the directory, and of what was not synced the whole or damage: each of these is looked at in
/// every world.
struct LockWorld: ModelWorld {
  struct Rules {
    var processes = 2
    var updates = 1
    var generations = 3
    var deaths = 1
    /// The value is damaged in the beginning, and what it was before is kept.
    var isDamaged = false
    /// Whether changes are to outlive a power cut: each may or may not, or none is.
    var hasPower = true
    /// What is taken out.
    var mutants: Mutants = []
    /// Keeps the value before only once the new one has its name.
    var keepsLate = false
  }

  /// A file with a value in it; what it holds tells it from every other one that has a name.
  struct File: Hashable {
    let content: Int8
    let writer: Int8
    /// Whether it says that it was synced before it got its name.
    var isMarked = false
    var isSynced = false
    var isDamaged = false
  }

  /// `lock/<g>.d`, by what its inode holds.
  struct Staging: Hashable {
    var next: File?
    var kept: File?

    var isEmpty: Bool { next == nil && kept == nil }
  }

  /// What the names of the channel's directory lead to.
  struct Names: Hashable {
    var value: File?
    var kept: File?
  }

  /// All that changes.
  struct State: Hashable {
    /// Who holds the flock of each generation.
    var owners: [Int8]
    /// The inode under the name `<g>.d`; 0: none.
    var directories: [Int8]
    /// What is in each inode; nil: it was removed, and nothing can be made in it.
    var inodes: [Staging?] = [nil]
    var names = Names()
    /// The names as they may be on the disk: those of the latest sync, and each since.
    var onDisk: [Names]
    /// The latest change that was told to outlive a power cut.
    var promised: Int8 = 0
    var deaths: Int8
    var processes: [Process]
    var violation: Broken?
  }

  enum Broken: String, Hashable {
    case overwritten = "a change went over a value that it had not read"
    case gone = "there is no value, and there was one"
    case takenAway = "a good value was taken away in place of a damaged one"
  }

  static let absent: Int8 = -2
  static let free: Int8 = -1

  let rules: Rules
  var state: State

  init(_ rules: Rules) {
    self.rules = rules
    var names = Names()
    if rules.isDamaged {
      let kept = File(content: 1, writer: -1, isMarked: true, isSynced: true)
      names = Names(value: File(content: 1, writer: -2, isDamaged: true), kept: kept)
    }
    state = State(
      owners: [Self.absent, Self.free]
        + Array(repeating: Self.absent, count: rules.generations - 1),
      directories: Array(repeating: 0, count: rules.generations + 1),
      names: names, onDisk: [names], deaths: Int8(rules.deaths),
      processes: Array(repeating: Process(updates: Int8(rules.updates)), count: rules.processes))
  }

  static func == (left: LockWorld, right: LockWorld) -> Bool { left.state == right.state }
  func hash(into hasher: inout Hasher) { hasher.combine(state) }

  var violation: String? { state.violation?.rawValue }

  var isOver: Bool { state.processes.allSatisfy(\.isDone) }

  /// Each change is there, once: those that were made, and perhaps those of whoever died.
  var verdict: String? {
    let sure = state.processes.reduce(0) { $0 + Int($1.committed) }
    let sum = Int(state.names.value?.content ?? 0) - (rules.isDamaged ? 1 : 0)
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
      // Whole, and damaged, if it may be either.
      if !value.isDamaged { count += 1 }
      if !value.isDamaged, value.content < state.promised {
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

  /// A free inode, so that worlds which differ only in numbers are one.
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

  /// A name of the channel's directory has changed.
  mutating func rename(_ body: (inout Names) -> Void) {
    let had = state.names.value != nil
    body(&state.names)
    if had, state.names.value == nil { state.violation = .gone }
    if rules.hasPower, state.onDisk.last != state.names { state.onDisk.append(state.names) }
  }
}
