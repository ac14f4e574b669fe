/// A small world in memory, in which processes take turns step by step.
protocol ModelWorld: Hashable {
  /// One of them goes one step further, or something befalls it.
  mutating func step(_ choices: inout Choices)

  /// What was broken, if anything.
  var violation: String? { get }

  /// Whether nobody has anything left to do.
  var isOver: Bool { get }

  /// What is wrong with how it all ended.
  var verdict: String? { get }

  /// Looks what would be left if the power went now: how many outcomes there are, and the first
  /// that breaks a promise.
  var cuts: (count: Int, violation: String?) { get }
}

/// A walk through what a world can come to.
struct Exploration<World: ModelWorld> {
  struct Result {
    /// How many different worlds were seen, and how many steps led to them.
    var states = 0
    var steps = 0
    /// How many outcomes of a power cut were looked at.
    var cuts = 0
    /// After how many steps each world was seen that there is.
    var depth = 0
    /// Whether there is none beyond.
    var isComplete = false
    var violation: String?
    /// The shortest way to it.
    var path: [Way] = []
  }

  let start: World
  private var seen: Set<Int> = []
  /// How each world was come to: from which, and by what.
  private var origins: [(parent: Int32, way: Way)] = []
  private(set) var result = Result()

  init(_ start: World) { self.start = start }

  /// Every interleaving, in the order of their length, until a depth or a number of worlds is
  /// reached.
  ///
  /// Of a world that has been left nothing is kept but 64 bits that tell it from others. Among a
  /// million, two have the same ones in one of tens of millions of runs, and then one is left out;
  /// the next run mixes them anew.
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
      let (count, broken) = other.cuts
      result.cuts += count
      if let broken = other.violation ?? broken ?? (other.isOver ? other.verdict : nil) {
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

  /// As many ways through, each to its end, as chance picks: deeper than a walk through all comes.
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
        let (count, broken) = world.cuts
        result.cuts += count
        result.violation = world.violation ?? broken
      }
      if world.isOver, result.violation == nil { result.violation = world.verdict }
      if result.violation != nil { result.path = path }
    }
    return result
  }

  /// Goes one way again, and tells of each step.
  static func replay(_ start: World, _ path: [Way], _ tell: (String) -> Void) -> String? {
    var world = start
    for way in path {
      var choices = Choices(way)
      world.step(&choices)
      tell(choices.told)
      if let broken = world.violation ?? world.cuts.violation { return broken }
    }
    return world.isOver ? world.verdict : nil
  }
}
