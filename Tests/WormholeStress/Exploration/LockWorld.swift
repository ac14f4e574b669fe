import WormholeContainerStorage

/// A model of one channel's lock, under which processes change a value.
///
/// Each process runs the same ``LockMachine`` as the executor, over lock files, staging directories
/// and flocks in memory. Every call that other processes could observe is a step of its own. A
/// process that is not chosen is a suspended process, for as long as the suspension lasts; any
/// process may die between two steps. The lease has no length: a waiter may find at any time that
/// the heartbeat has stopped. So the model contains every order to which heartbeats, renewals and
/// clocks could lead, and more.
///
/// A commit here is the rename out of the staging directory, which the machine's fence relies on.
/// Schedules run the executor itself, with the previous value, saves and power cuts, but with few
/// preemptions. The model stays for every number of preemptions: of three processes, with two
/// takeovers in a row, and with a death or suspension between any two steps.
struct LockWorld: ModelWorld {
  struct Rules {
    var processes = 2
    var updates = 1
    var generations = 3
    var deaths = 1
    /// The disabled mechanism.
    var mutant: Mutants?
  }

  /// A file with a value: different from every other file that was the value.
  struct File: Hashable {
    let content: Int8
    let writer: Int8
  }

  /// `lock/<g>.d`, by the content of its inode.
  struct Staging: Hashable {
    var next: File?
  }

  /// All mutable state.
  struct State: Hashable {
    /// The holder of the flock of each generation.
    var owners: [Int8]
    /// The inode under the name `<g>.d`; 0: none.
    var directories: [Int8]
    /// The content of each inode; nil: the directory was removed, and no file can be made inside.
    var inodes: [Staging?] = [nil]
    var value: File?
    var deaths: Int8
    var processes: [Process]
    /// Whether a change has replaced a value that its process had not read.
    var isOverwritten = false
  }

  static let absent: Int8 = -2
  static let free: Int8 = -1

  let rules: Rules
  var state: State

  init(_ rules: Rules) {
    self.rules = rules
    state = State(
      owners: [Self.absent, Self.free]
        + Array(repeating: Self.absent, count: rules.generations - 1),
      directories: Array(repeating: 0, count: rules.generations + 1), deaths: Int8(rules.deaths),
      processes: Array(repeating: Process(updates: Int8(rules.updates)), count: rules.processes))
  }

  static func == (left: LockWorld, right: LockWorld) -> Bool { left.state == right.state }
  func hash(into hasher: inout Hasher) { hasher.combine(state) }

  var violation: String? {
    state.isOverwritten ? "a change overwrote a value without reading it" : nil
  }

  var isOver: Bool { state.processes.allSatisfy(\.isDone) }

  /// Checks that each change is in the value, once: the changes that were made, and perhaps the
  /// changes of dead processes.
  var verdict: String? {
    let sure = state.processes.reduce(0) { $0 + Int($1.committed) }
    let sum = Int(state.value?.content ?? 0)
    let most = sure + rules.deaths - Int(state.deaths)
    return sum >= sure && sum <= most ? nil : "\(sure) changes were made, and \(sum) are there"
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
}
