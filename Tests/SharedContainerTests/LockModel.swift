import SharedContainer

/// A world of lock files and staging directories in memory, in which processes take turns.
///
/// Each runs the very ``LockMachine`` that the executor runs, over a file system whose every call
/// is one step. A process may die between any two steps, and take a lock over at any time.
struct LockModel: Hashable {
  struct Process: Hashable {
    var machine = LockMachine()
    var action: LockMachine.Action
    /// Where within an action of several calls it is.
    var step = 0
    /// The inode of the staging directory that it has open.
    var staging = 0
    /// The inode it is removing.
    var removing = 0
    var removingGeneration = 0
    var read = 0
    var updatesLeft: Int
    var isDead = false
  }

  struct Rules: Hashable {
    var generations = 3
    var deaths = 1
    var fence = true
    var removal = true
    /// On standing still, go on as if the lock were held.
    var steals = false
  }

  let rules: Rules
  /// Who holds the flock of each generation; nil: the lock file does not exist.
  ///
  /// -1: nobody.
  var owners: [Int?]
  /// The inode under the name `<g>.d`; 0: none.
  var directories: [Int]
  /// What is staged in each inode that is alive; nil: dead.
  ///
  /// 0: nothing.
  var staged: [Int?] = [nil]
  var value = 0
  var deathsLeft: Int
  var processes: [Process]
  /// Set when a commit went over a value it had not read.
  var isViolated = false

  init(processes count: Int, updates: Int = 1, _ rules: Rules = Rules()) {
    self.rules = rules
    owners = [nil, -1] + Array(repeating: nil, count: rules.generations - 1)
    directories = Array(repeating: 0, count: rules.generations + 1)
    deathsLeft = rules.deaths
    processes = []
    for _ in 0..<count {
      var process = Process(action: .finish(.failed), updatesLeft: updates)
      process.action = process.machine.next(.begin)
      processes.append(process)
    }
  }

  var isOver: Bool {
    processes.allSatisfy { process in
      if case .finish = process.action { return process.isDead || process.updatesLeft == 0 }
      return process.isDead
    }
  }

  /// All worlds that one step of one process, or the death of one, leads to.
  func successors() -> [LockModel] {
    var found: [LockModel] = []
    for index in processes.indices where !processes[index].isDead {
      if case .finish = processes[index].action, processes[index].updatesLeft == 0 { continue }
      for choice in 0..<choices(of: index) {
        var next = self
        next.advance(index, choice)
        found.append(next)
      }
      if deathsLeft > 0 {
        var next = self
        next.kill(index)
        found.append(next)
      }
    }
    return found
  }

  mutating func kill(_ index: Int) {
    processes[index] = Process(action: .finish(.failed), updatesLeft: 0, isDead: true)
    deathsLeft -= 1
    for generation in owners.indices where owners[generation] == index { owners[generation] = -1 }
  }

  /// In how many ways the pending action may go on now.
  func choices(of index: Int) -> Int {
    guard case .wait(let generation) = processes[index].action else { return 1 }
    return waitEvents(index, generation).count
  }

  private func waitEvents(_ index: Int, _ generation: Int) -> [LockMachine.Event] {
    var events: [LockMachine.Event] = []
    if owners[generation] == -1 { events.append(.locked) }
    if exists(generation + 1) { events.append(.newer) }
    if generation < rules.generations { events.append(.stoodStill) }
    return events
  }

  private func exists(_ generation: Int) -> Bool {
    generation < owners.count && owners[generation] != nil
  }

  private mutating func tell(_ index: Int, _ event: LockMachine.Event) {
    processes[index].step = 0
    processes[index].removing = 0
    processes[index].removingGeneration = 0
    if case .unlock = processes[index].action {
      processes[index].staging = 0
      processes[index].read = 0
    }
    processes[index].action = processes[index].machine.next(
      event, fence: rules.fence, removal: rules.removal)
  }

  mutating func advance(_ index: Int, _ choice: Int) {
    switch processes[index].action {
    case .find(let lowest):
      if exists(lowest + 1) {
        processes[index].action = .find(from: lowest + 1)
      } else {
        tell(index, .found(lowest))
      }
    case .tryLock(let generation):
      guard owners[generation] == -1 else { return tell(index, .contended) }
      owners[generation] = index
      tell(index, .locked)
    case .wait(let generation):
      let event = waitEvents(index, generation)[choice]
      if event == .locked { owners[generation] = index }
      tell(index, event == .stoodStill && rules.steals ? .locked : event)
    case .make(let generation):
      guard !exists(generation) else { return tell(index, .existed) }
      owners[generation] = index
      tell(index, .made)
    case .openStaging(let generation): openStaging(index, generation)
    case .removeStaging(let limit): removeStaging(index, limit)
    case .look(let generation): tell(index, exists(generation) ? .newer : .newest)
    case .mark: tell(index, .marked)
    case .run:
      processes[index].read = value
      tell(index, .changed)
    case .commit: commit(index)
    case .unlock(let generation):
      if owners[generation] == index { owners[generation] = -1 }
      tell(index, .unlocked)
    case .finish:
      processes[index].updatesLeft -= 1
      if processes[index].updatesLeft > 0 { tell(index, .begin) }
    }
    if case .finish = processes[index].action, processes[index].updatesLeft > 0 {
      processes[index].updatesLeft -= 1
      if processes[index].updatesLeft > 0 { tell(index, .begin) }
    }
  }

  private mutating func openStaging(_ index: Int, _ generation: Int) {
    if processes[index].step == 0 {
      if directories[generation] == 0 { directories[generation] = freshInode() }
      processes[index].step = 1
    } else if directories[generation] == 0 {
      processes[index].step = 0
    } else {
      processes[index].staging = directories[generation]
      tell(index, .opened)
    }
  }

  /// The first inode that is dead and that nobody has open, so that worlds which differ only in
  /// numbers are one.
  private mutating func freshInode() -> Int {
    let open = Set(processes.flatMap { $0.isDead ? [] : [$0.staging, $0.removing] })
    let free = staged.indices.dropFirst().first { staged[$0] == nil && !open.contains($0) }
    if let free {
      staged[free] = 0
      return free
    }
    staged.append(0)
    return staged.count - 1
  }

  private mutating func removeStaging(_ index: Int, _ limit: Int) {
    switch processes[index].step {
    case 0:
      processes[index].removingGeneration = limit - 1
      processes[index].step = 1
    case 1:  // open
      let generation = processes[index].removingGeneration
      if generation == 0 { return tell(index, .removed) }
      if directories[generation] == 0 {
        processes[index].removingGeneration -= 1
      } else {
        processes[index].removing = directories[generation]
        processes[index].step = 2
      }
    case 2:  // unlink through the descriptor
      let inode = processes[index].removing
      if staged[inode] != nil { staged[inode] = 0 }
      processes[index].step = 3
    default:  // rmdir by name
      let inode = directories[processes[index].removingGeneration]
      if inode != 0, staged[inode] == 0 {
        staged[inode] = nil
        directories[processes[index].removingGeneration] = 0
      }
      processes[index].step = 1
    }
  }

  private mutating func commit(_ index: Int) {
    let inode = processes[index].staging
    if processes[index].step == 0 {
      guard let there = staged[inode] else { return tell(index, .superseded) }
      if there == 0 {
        staged[inode] = processes[index].read + 1
        processes[index].step = 1
      } else {
        staged[inode] = 0  // What a dead holder left is removed, and staging tried again.
      }
    } else {
      guard let ready = staged[inode], ready != 0 else { return tell(index, .superseded) }
      if value != processes[index].read { isViolated = true }
      value = ready
      staged[inode] = 0
      tell(index, .committed)
    }
  }
}
