/// A small model in memory, in which processes take turns step by step.
protocol ModelWorld: Hashable {
  /// Advances one process by one step, or lets a fault happen to the process.
  mutating func step(_ choices: inout Choices)

  /// The broken promise, if any.
  var violation: String? { get }

  /// Whether no process has work left.
  var isOver: Bool { get }

  /// The error of the final state, if any.
  var verdict: String? { get }
}

/// A search through the reachable states of a model.
struct Exploration<World: ModelWorld> {
  struct Result {
    /// The number of different states, and the number of steps that led to them.
    var states = 0
    var steps = 0
    /// The number of steps within which every reachable state was seen.
    var depth = 0
    /// Whether no state exists beyond that depth.
    var isComplete = false
    var violation: String?
    /// The shortest path to the violation.
    var path: [Way] = []
  }

  let start: World
  private var seen: Set<Int> = []
  /// The origin of each state: the previous state, and the decisions.
  private var origins: [(parent: Int32, way: Way)] = []
  private(set) var result = Result()

  init(_ start: World) { self.start = start }

  /// Searches every interleaving, in the order of their length, up to a depth or a number of
  /// states.
  ///
  /// Of a state that the search has left, only a 64-bit hash is stored. Among a million states, two
  /// have equal hashes in one of tens of millions of runs; the search then skips one of the two.
  /// The next run computes different hashes.
  mutating func walk(depth: Int = .max, states: Int) -> Result {
    seen = [start.hashValue]
    origins = [(-1, Way(decisions: []))]
    var layer: [(world: World, number: Int32)] = [(start, 0)]
    while !layer.isEmpty, result.depth < depth, origins.count < states {
      var next: [(world: World, number: Int32)] = []
      for (world, number) in layer {
        guard expand(world, number, into: &next) else { return end() }
      }
      result.depth += 1
      layer = next
    }
    result.isComplete = layer.isEmpty
    return end()
  }

  private mutating func expand(
    _ world: World, _ number: Int32, into next: inout [(world: World, number: Int32)]
  ) -> Bool {
    var choices = Choices()
    var isStuck = true
    repeat {
      var other = world
      other.step(&choices)
      result.steps += 1
      if other == world { continue }
      isStuck = false
      guard seen.insert(other.hashValue).inserted else { continue }
      origins.append((number, choices.way))
      if let broken = other.violation ?? (other.isOver ? other.verdict : nil) {
        return fail(broken, Int32(origins.count - 1))
      }
      next.append((other, Int32(origins.count - 1)))
    } while choices.next()
    if isStuck, !world.isOver { return fail("nobody can go on", number) }
    return true
  }

  private mutating func fail(_ violation: String, _ number: Int32) -> Bool {
    result.violation = violation
    var (number, path) = (Int(number), [Way]())
    while number > 0 {
      path.insert(origins[number].way, at: 0)
      number = Int(origins[number].parent)
    }
    result.path = path
    return false
  }

  private mutating func end() -> Result {
    result.states = origins.count
    return result
  }

  /// Follows a number of random paths, each to its end: deeper than the complete search reaches.
  mutating func wander(_ runs: Int, steps limit: Int, seed: UInt64) -> Result {
    var choices = Choices(Dice(seed: seed))
    for _ in 0..<runs where result.violation == nil {
      var (world, path) = (start, [Way]())
      for _ in 0..<limit where !world.isOver && result.violation == nil {
        choices.beginStep()
        world.step(&choices)
        path.append(choices.way)
        result.steps += 1
        result.depth = max(result.depth, path.count)
        result.violation = world.violation
      }
      if world.isOver, result.violation == nil { result.violation = world.verdict }
      if result.violation != nil { result.path = path }
    }
    return result
  }

  /// Follows one path again, and reports each step.
  static func replay(_ start: World, _ path: [Way], _ tell: (String) -> Void) -> String? {
    var world = start
    for way in path {
      var choices = Choices(way)
      world.step(&choices)
      tell(choices.told)
      if let broken = world.violation { return broken }
    }
    return world.isOver ? world.verdict : nil
  }
}
