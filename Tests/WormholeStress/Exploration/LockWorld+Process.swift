import WormholeContainerStorage

extension LockWorld {
  /// One process: its state machine, and the files that are open or remembered.
  struct Process: Hashable {
    var machine = LockMachine()
    var action = LockMachine.Action.finish(.committed)
    /// The position within an action of several calls.
    var step: Int8 = 0
    var updates: Int8
    /// The number of changes that have returned.
    var committed: Int8 = 0
    var isDead = false
    /// The open lock file, by generation.
    var lock: Int8 = 0
    /// The open staging directory, and its generation.
    var staging: Int8 = 0
    var stagingGeneration: Int8 = 0
    /// The directory that the process is removing, and its generation.
    var removing: Int8 = 0
    var removingGeneration: Int8 = 0
    /// The value that was read.
    var old: File?
    var isBetween = true

    var isDone: Bool { isDead || (isBetween && updates == 0) }

    init(updates: Int8) { self.updates = updates }
  }

  mutating func step(_ choices: inout Choices) {
    let index = choices.pick(state.processes.count)
    guard !state.processes[index].isDone else { return }
    if state.deaths > 0, choices.pick() {
      choices.tell("process \(index) dies")
      return kill(index)
    }
    choices.tell("process \(index): \(state.processes[index].action)")
    if state.processes[index].step > 0 { choices.tell("step \(state.processes[index].step)") }
    go(index, &choices)
  }

  private mutating func kill(_ index: Int) {
    let committed = state.processes[index].committed
    state.processes[index] = Process(updates: 0)
    state.processes[index].isDead = true
    state.processes[index].committed = committed
    state.deaths -= 1
    for generation in state.owners.indices where state.owners[generation] == Int8(index) {
      state.owners[generation] = Self.free
    }
  }

  mutating func tell(_ index: Int, _ event: LockMachine.Event) {
    state.processes[index].step = 0
    state.processes[index].removing = 0
    state.processes[index].removingGeneration = 0
    if event == .superseded { state.processes[index].staging = 0 }
    state.processes[index].action = state.processes[index].machine.next(
      event, fence: rules.mutant != .noFence,
      removal: rules.mutant != .noRemoval)
    if case .finish(let ending) = state.processes[index].action { conclude(index, ending) }
  }

  /// Returns from a change.
  private mutating func conclude(_ index: Int, _ ending: LockEnd) {
    if ending == .committed { state.processes[index].committed += 1 }
    state.processes[index].old = nil
    state.processes[index].isBetween = true
    state.processes[index].step = 0
  }

  private mutating func go(_ index: Int, _ choices: inout Choices) {
    let me = state.processes[index]
    if me.isBetween {
      state.processes[index].isBetween = false
      state.processes[index].updates -= 1
      return tell(index, .begin)
    }
    switch me.action {
    case .find(let lowest):
      // An open lock file counts as the newest generation until it is locked.
      if Int(me.lock) == lowest || !exists(lowest + 1) { return tell(index, .found(lowest)) }
      state.processes[index].action = .find(from: lowest + 1)
    case .tryLock(let generation):
      state.processes[index].lock = Int8(generation)
      guard state.owners[generation] == Self.free else { return tell(index, .contended) }
      state.owners[generation] = Int8(index)
      tell(index, .locked)
    case .wait(let generation): wait(index, generation, &choices)
    case .make(let generation):
      guard !exists(generation) else { return tell(index, .existed) }
      state.owners[generation] = Int8(index)
      state.processes[index].lock = Int8(generation)
      tell(index, .made)
    case .openStaging(let generation): openStaging(index, Int8(generation))
    case .removeStaging(let limit): removeStaging(index, Int8(limit))
    case .look(let generation): tell(index, exists(generation) ? .newer : .newest)
    // The content of the heartbeat decides only when other processes take over.
    case .mark: tell(index, .marked)
    case .run:
      state.processes[index].old = state.value
      tell(index, .changed)
    case .commit: commit(index)
    case .unlock(let generation):
      if state.owners[generation] == Int8(index) { state.owners[generation] = Self.free }
      tell(index, .unlocked)
    case .finish: break
    }
  }

  private mutating func wait(_ index: Int, _ generation: Int, _ choices: inout Choices) {
    var events: [LockMachine.Event] = []
    if state.owners[generation] == Self.free { events.append(.locked) }
    if exists(generation + 1) { events.append(.newer) }
    if generation < rules.generations { events.append(.stoodStill) }
    guard !events.isEmpty else { return }
    let event = events[choices.pick(events.count)]
    choices.tell("\(event)")
    if event == .locked { state.owners[generation] = Int8(index) }
    tell(index, event)
  }

  private mutating func openStaging(_ index: Int, _ generation: Int8) {
    let me = state.processes[index]
    if me.staging != 0, me.stagingGeneration == generation { return tell(index, .opened) }
    let inode = state.directories[Int(generation)]
    if me.step == 0 {
      state.processes[index].staging = 0
      if inode == 0 { state.directories[Int(generation)] = makeInode() }
      state.processes[index].step = 1
    } else if inode == 0 {
      state.processes[index].step = 0
    } else {
      state.processes[index].staging = inode
      state.processes[index].stagingGeneration = generation
      tell(index, .opened)
    }
  }

  private mutating func removeStaging(_ index: Int, _ limit: Int8) {
    let me = state.processes[index]
    let generation = me.step == 0 ? limit - 1 : me.removingGeneration
    switch me.step {
    case 0, 1:  // open the directory, or the next lower one
      var number = generation
      while number > 0, state.directories[Int(number)] == 0 { number -= 1 }
      guard number > 0 else { return tell(index, .removed) }
      state.processes[index].removingGeneration = number
      state.processes[index].removing = state.directories[Int(number)]
      state.processes[index].step = 2
    case 2:  // unlink its file through the descriptor
      let inode = Int(me.removing)
      guard state.inodes[inode]?.next != nil else { return rmdir(index, generation) }
      state.inodes[inode]?.next = nil
    default: break
    }
  }

  /// Removes a staging directory by name, if it is empty.
  private mutating func rmdir(_ index: Int, _ generation: Int8) {
    let inode = Int(state.directories[Int(generation)])
    if inode != 0, state.inodes[inode] == Staging() {
      state.inodes[inode] = nil
      state.directories[Int(generation)] = 0
    }
    state.processes[index].removing = 0
    state.processes[index].step = 1
  }
}
