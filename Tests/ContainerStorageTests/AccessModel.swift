import WormholeContainerStorage

/// The state of a model in memory: accesses of processes that take turns.
///
/// Each process runs the very ``AccessMachine`` that the executor runs, over directories whose
/// every call is one step. At any step a process may die. A takeover, for which a lease must pass
/// without a heartbeat, may happen at any moment, or only to a suspended process.
///
/// Schedules run the executor itself, with a writer and a presenter, and a move. The model stays
/// for three processes that overtake each other, fences and listings that fail, and deaths at any
/// step: no schedule has these.
struct AccessModel: Hashable {
  /// Which access of which process.
  typealias Name = Int
  typealias Machine = AccessMachine<Name>

  struct Rules: Hashable {
    /// The processes that write; all further processes read.
    var writers: Set<Int> = [0, 1, 2]
    /// The processes that have asked to overtake.
    var takers: Set<Int> = [0, 1, 2]
    /// Process 0 uses a folder, and each further process a file in the folder.
    var isFolder = false
    var deaths = 1
    /// The processes that may die.
    var mortals: Set<Int> = [0, 1, 2]
    /// The processes that may be overtaken.
    var slow: Set<Int> = [0, 1, 2]
    /// How often a process that is only slow may be overtaken.
    var takeovers = 0
    /// How many processes may be suspended permanently.
    var stops = 0
    var flaws: Machine.Flaws = []
    /// Arriving does not need the directory of the lock's generation.
    var isLockUnfenced = false
    /// A listing can miss a file that is being renamed.
    var listsWhileRenaming = false
    /// An overtaken access is overtaken for all other accesses too.
    var isLenient = false
    /// Readers do not wait for waiting writers.
    var readersJump = false
    /// How many accesses each process makes, one after the other.
    var rounds = 1
    /// Writers that replace nothing.
    var plain: Set<Int> = []
    /// How many listings and fences may fail.
    var failures = 0
    /// A fence empties the hidden directory, and does not remove it.
    var leavesDirectory = false
    /// A process whose listing failed keeps its earlier result.
    var keepsOldFinding = false
    /// The notice of a death arrives before the process is seen to be dead.
    var tellsOfDeathEarly = false
    /// A sleeping process checks now and then without a notice.
    var looksNowAndThen = false

    func conflict(_ one: Int, _ other: Int) -> Bool {
      one != other && (!isFolder || one == 0 || other == 0)
        && (writers.contains(one) || writers.contains(other))
    }
  }

  struct Process: Hashable {
    var machine: Machine
    var action: Machine.Action
    var cursor = 0
    var found: [Name] = []
    /// How often the process has arrived: its access has a new name each time.
    var count = 0
    var round = 1
    /// The process found no other access when it last had the lock.
    var hasFoundNobody = false
    /// No other process has had the lock since.
    var isAlone = false
    var place: AccessPlace?
    /// The access's rename is half done: its file is in no directory.
    var isBetween = false
    var isHidden = false
    /// The hidden directory contains a new file.
    var hasMade = false
    var hasReplaced = false
    var isInside = false
    var isWatching = false
    var hasNews = false
    var generation = 0
    var seen = 0
    var order = 0
    var isDying = false
    var isDead = false
    var isStopped = false
    var isOver = false
  }

  let rules: Rules
  var processes: [Process]
  var owner: Int?
  var generation = 1
  /// The last process that had the lock, in this generation.
  var lastOwner: Int?
  var value = 0
  var order = 0
  var deathsLeft: Int
  var takeoversLeft: Int
  var stopsLeft: Int
  var failuresLeft: Int
  var violation: String?

  init(_ count: Int, _ rules: Rules) {
    self.rules = rules
    (deathsLeft, takeoversLeft, stopsLeft) = (rules.deaths, rules.takeovers, rules.stops)
    failuresLeft = rules.failures
    processes = (0..<count).map { Process(machine: Machine(Self.terms($0, rules)), action: .lock) }
  }

  private static func terms(_ index: Int, _ rules: Rules) -> Machine.Terms {
    var terms = Machine.Terms()
    terms.replaces = rules.writers.contains(index) && !rules.plain.contains(index)
    terms.takesOver = rules.takers.contains(index)
    return terms
  }

  private static func name(_ index: Int, _ count: Int) -> Name { index * 16 + count }
  private func name(_ index: Int) -> Name { Self.name(index, processes[index].count) }

  /// The directory of the file with the given name.
  private func place(_ name: Name) -> AccessPlace? {
    let process = processes[name / 16]
    return process.count == name % 16 && !process.isBetween ? process.place : nil
  }

  /// Whether the file with the given name is being renamed.
  private func isBetween(_ name: Name) -> Bool {
    processes[name / 16].isBetween && processes[name / 16].count == name % 16
  }

  /// How many of the last blockers have ended.
  private func endedCount(_ index: Int) -> Int {
    processes[index].machine.blockers.reversed()
      .prefix { place($0) == nil && !isBetween($0) }.count
  }

  var isOver: Bool { processes.allSatisfy { $0.isOver || $0.isDead } }

  /// The states after each possible next step.
  func successors() -> [AccessModel] {
    var found: [AccessModel] = []
    for index in processes.indices {
      let process = processes[index]
      guard !process.isOver, !process.isDead else { continue }
      if process.isDying {
        var next = self
        next.end(index)
        found.append(next)
        continue
      }
      if deathsLeft > 0, rules.mortals.contains(index) {
        var next = self
        next.kill(index)
        found.append(next)
      }
      guard !process.isStopped else { continue }
      if stopsLeft > 0 {
        var next = self
        next.stopsLeft -= 1
        next.processes[index].isStopped = true
        found.append(next)
      }
      for choice in 0..<choices(index) {
        var next = self
        next.advance(index, choice)
        found.append(next)
      }
    }
    if found.isEmpty, violation == nil,
      processes.contains(where: { !$0.isOver && !$0.isDead && !$0.isStopped })
    {
      var stuck = self
      stuck.violation = "somebody sleeps for ever"
      found.append(stuck)
    }
    return found
  }

  private mutating func kill(_ index: Int) {
    deathsLeft -= 1
    processes[index].isInside = false
    if rules.tellsOfDeathEarly { processes[index].isDying = true } else { end(index) }
    tellAll()
  }

  private mutating func end(_ index: Int) {
    processes[index].isDead = true
    if owner == index { owner = nil }
  }

  private mutating func tellAll() {
    for index in processes.indices where processes[index].isWatching {
      processes[index].hasNews = true
    }
  }

  private func standsStill(_ index: Int) -> Bool {
    processes[index].isStopped || takeoversLeft > 0 && rules.slow.contains(index)
  }

  /// In how many ways the pending action may go on now.
  private func choices(_ index: Int) -> Int {
    switch processes[index].action {
    case .lock: return owner == nil || owner.map(standsStill) == true ? 1 : 0
    case .look(let name):
      // A notice may have reported any number of ends, or none yet.
      guard place(name) != nil else { return 1 + endedCount(index) }
      if processes[name / 16].isDead { return 1 }
      if processes[name / 16].isStopped { return 1 }
      return standsStill(name / 16) ? 2 : 1
    case .list: return failuresLeft > 0 && !processes[index].isAlone ? 2 : 1
    case .clear: return failuresLeft > 0 ? 2 : 1
    // The process makes the new file again if a fence has removed the file.
    case .run: return processes[index].isHidden && !processes[index].hasMade ? 2 : 1
    case .sleep:
      let isSeen = processes[index].machine.blockers.contains { standsStill($0 / 16) }
      let isGone = processes[index].machine.blockers.contains {
        place($0) == nil || processes[$0 / 16].isDead
      }
      return processes[index].hasNews || isSeen || rules.looksNowAndThen && isGone ? 1 : 0
    default: return 1
    }
  }

  private mutating func tell(_ index: Int, _ event: Machine.Event) {
    processes[index].cursor = 0
    processes[index].found = []
    let action = processes[index].action
    let next = processes[index].machine.next(event, after: action, flaws: rules.flaws)
    processes[index].action = next
    if case .finish(.superseded) = next, processes[index].hasReplaced {
      violation = "one that has changed the file is told that it has not"
    }
    if case .finish = next {
      processes[index].isOver = processes[index].round == rules.rounds
      processes[index].isWatching = false
      if !processes[index].isOver { beginAnother(index) }
    }
    if case .run = next { enterAccessor(index) }
  }

  private mutating func beginAnother(_ index: Int) {
    processes[index].round += 1
    processes[index].machine = Machine(Self.terms(index, rules))
    processes[index].action = .lock
    processes[index].hasReplaced = false
  }

  private mutating func enterAccessor(_ index: Int) {
    processes[index].isInside = true
    processes[index].hasMade = processes[index].isHidden
    processes[index].seen = value
    for other in processes.indices where rules.conflict(index, other) {
      if processes[other].isInside {
        // The sleeper and its overtaker.
        let overtaken = [index, other].filter { processes[$0].place == .overtaken }
        if overtaken.isEmpty { violation = "two run that conflict" }
        for one in [index, other] where processes[one].place != .overtaken {
          if !rules.takers.contains(one) {
            violation = "one that has not asked for it meets another"
          }
        }
      }
      if processes[other].place == .waiting, !processes[other].isDead,
        processes[other].order < processes[index].order
      {
        violation = "one that came later went first"
      }
    }
  }

  private mutating func advance(_ index: Int, _ choice: Int) {
    switch processes[index].action {
    case .lock:
      if let owner, owner != index {
        if !processes[owner].isStopped { takeoversLeft -= 1 }
        generation += 1
        lastOwner = nil
      }
      processes[index].isAlone = processes[index].hasFoundNobody && lastOwner == index
      if !rules.keepsOldFinding {
        processes[index].hasFoundNobody = processes[index].isAlone
      }
      (owner, lastOwner) = (index, index)
      processes[index].generation = generation
      tell(index, .locked)
    case .list where choice == 1:
      failuresLeft -= 1
      tell(index, .failed)
    case .list(let place): list(index, place)
    case .arrive(let place):
      processes[index].hasFoundNobody = processes[index].machine.blockers.isEmpty
      guard processes[index].generation == generation || rules.isLockUnfenced else {
        return tell(index, .lockLost)
      }
      order += 1
      processes[index].order = order
      processes[index].count += 1
      processes[index].place = place
      tell(index, .arrived)
    case .unlock:
      if owner == index, processes[index].generation == generation { owner = nil }
      tell(index, .unlocked)
    case .watch:
      processes[index].isWatching = true
      tell(index, .watched)
    case .look(let name): look(index, name, choice)
    case .bury(let name):
      processes[name / 16].isHidden = false
      processes[name / 16].hasMade = false
      remove(name)
      tell(index, .gone)
    case .pass(let name):
      guard place(name) == .waiting else { return tell(index, .moved) }
      remove(name)
      tell(index, .gone)
    case .take(let name, let from):
      guard place(name) == from else { return tell(index, .moved) }
      processes[name / 16].place = .overtaken
      if rules.isLenient { forget(name, but: index) }
      tell(index, .taken)
    case .clear where choice == 1:
      failuresLeft -= 1
      tell(index, .failed)
    case .clear(let name): clear(name, for: index)
    case .sleep:
      processes[index].hasNews = false
      tell(index, .woken)
    case .hide:
      processes[index].isHidden = true
      tell(index, .hidden)
    case .unhide:
      processes[index].isHidden = false
      processes[index].hasMade = false
      tell(index, .unhidden)
    case .enter: enter(index)
    case .run where choice == 1: processes[index].hasMade = true
    case .run:
      processes[index].isInside = false
      tell(index, .ran(commits: true))
    case .commit: commit(index)
    case .leave:
      let event: Machine.Event = processes[index].place == .overtaken ? .superseded : .left
      if processes[index].place != nil { remove(name(index)) }
      tell(index, event)
    case .finish: break
    }
  }

  /// The new file is moved out of the hidden directory first.
  ///
  /// Then the directory is removed, which fails if its owner has made another file in between.
  private mutating func clear(_ name: Name, for index: Int) {
    let other = name / 16
    guard place(name) != nil, processes[other].isHidden else { return tell(index, .cleared) }
    if processes[other].hasMade {
      processes[other].hasMade = false
      guard rules.leavesDirectory else { return }
    }
    if !rules.leavesDirectory { processes[other].isHidden = false }
    tell(index, .cleared)
  }

  private mutating func remove(_ name: Name) {
    processes[name / 16].place = nil
    tellAll()
  }

  private mutating func forget(_ name: Name, but index: Int) {
    for other in processes.indices where other != index && other != name / 16 {
      if case .look(name) = processes[other].action {} else { continue }
      tell(other, .gone)
    }
  }

  /// A listing goes from name to name while other processes continue.
  private mutating func list(_ index: Int, _ place: AccessPlace) {
    if processes[index].isAlone { return tell(index, .listed([])) }
    let cursor = processes[index].cursor
    guard cursor < processes.count else { return tell(index, .listed(processes[index].found)) }
    let jumps = rules.readersJump && !rules.writers.contains(index) && place == .waiting
    if rules.conflict(index, cursor), !jumps, self.place(name(cursor)) == place,
      !processes[index].machine.blockers.contains(name(cursor))
    {
      processes[index].found.append(name(cursor))
    }
    processes[index].cursor += 1
    // Names of accesses that cannot conflict are not worth a step.
    while processes[index].cursor < processes.count,
      !rules.conflict(index, processes[index].cursor)
    {
      processes[index].cursor += 1
    }
  }

  private mutating func look(_ index: Int, _ name: Name, _ choice: Int) {
    let other = name / 16
    guard let place = place(name) else {
      if isBetween(name) { return tell(index, .stands) }
      return tell(index, choice == 0 ? .gone : .ended(choice))
    }
    if processes[other].isDead { return tell(index, .dead) }
    if processes[other].isStopped { return tell(index, .stoodStill(place)) }
    guard choice == 1 else { return tell(index, .stands) }
    takeoversLeft -= 1
    tell(index, .stoodStill(place))
  }

  private mutating func enter(_ index: Int) {
    if processes[index].isBetween {
      processes[index].isBetween = false
      processes[index].place = .running
      return tell(index, .entered)
    }
    guard processes[index].place == .waiting else { return tell(index, .passedOver) }
    if rules.listsWhileRenaming {
      processes[index].isBetween = true
    } else {
      processes[index].place = .running
      tell(index, .entered)
    }
  }

  private mutating func commit(_ index: Int) {
    // A process cannot commit from an emptied directory, and checks whether its access is still
    // valid.
    guard processes[index].isHidden, processes[index].hasMade else {
      return tell(index, .superseded)
    }
    if !rules.isFolder, value != processes[index].seen {
      violation = "a superseded one has changed the file"
    }
    value += 1
    processes[index].hasReplaced = true
    tell(index, .committed)
  }
}
