import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let explore = Verb(
    "explore", "explore every interleaving of small models in memory", [],
    [.world, .states, .seed, .wander, .mutant, .path],
    [
      "The state machines of the lock and of the mailbox, the same code as in the library, "
        + "advance step by step over a directory that is a few values in memory. Every order of "
        + "the steps of two and three processes is explored, with a death between any two steps, "
        + "the shortest paths first, until the requested number of states was visited. Then random "
        + "paths go deeper.",
      "A suspended process is a process that takes no step; its lease may expire at any time.",
    ],
    [
      Example("wormhole-stress explore", "a million states"),
      Example("wormhole-stress explore --mutant no-fence", "with a mechanism disabled"),
      Example(
        "wormhole-stress explore --world lock-two --mutant no-fence --path 0.1.1",
        "one path again, step by step"),
    ]
  ) { invocation in
    let worlds = try invocation.worlds()
    let mutant = try invocation.exploredMutant()
    if let path = invocation.value(.path) {
      return try invocation.replay(path, in: worlds, mutant) ? 0 : ExitCode.no.rawValue
    }
    return try invocation.explore(worlds, mutant) ? 0 : ExitCode.no.rawValue
  }
}

extension Invocation {
  fileprivate func worlds() throws -> [Exploring] {
    guard let name = value(.world) else { return Exploring.allCases }
    guard let world = Exploring(rawValue: name) else {
      let names = Exploring.allCases.map(\.rawValue).joined(separator: ", ")
      throw Failure.usage("cannot explore '\(name)': the models are \(names)")
    }
    return [world]
  }

  fileprivate func exploredMutant() throws -> Mutants? {
    guard let name = value(.mutant) else { return nil }
    let known = Exploring.mutants
    guard let mutant = Plan.mutant(name), known.contains(name) else {
      throw Failure.usage(
        "cannot disable '\(name)': the mutants are \(known.joined(separator: ", "))")
    }
    return mutant
  }

  /// Returns whether no promise was broken.
  fileprivate func explore(_ worlds: [Exploring], _ mutant: Mutants?) throws -> Bool {
    let wanted = try number(.states, least: 1000) ?? 1_000_000
    let runs = try number(.wander, least: 0) ?? 500
    let seed = UInt64(try number(.seed, least: 0) ?? .random(in: 0..<1_000_000))
    var (states, violations) = (0, 0)
    // If a small model has fewer states than its share, the following models get the rest.
    var left = wanted
    for (index, world) in worlds.enumerated() {
      let begin = Instant.now
      let share = worlds.count == 1 ? wanted : world.share(of: left, among: worlds[index...])
      let walked = world.walk(states: share, wandering: runs, seed: seed, mutant)
      states += walked.states
      left -= walked.states
      if walked.violation != nil { violations += 1 }
      try output.write(walked, of: world, value(.mutant), seed, took: Instant.now - begin)
    }
    if !output.isJSON { try output.write(line: "explored \(states) states") }
    return violations == 0
  }

  /// Returns whether no promise was broken in the replay.
  fileprivate func replay(
    _ text: String, in worlds: [Exploring], _ mutant: Mutants?
  ) throws -> Bool {
    guard worlds.count == 1, let path = Way.path(text) else {
      throw Failure.usage("cannot use --path: give --world and a path that was printed for it")
    }
    var lines: [String] = []
    let broken = worlds[0].replay(path, mutant) { lines.append($0) }
    for (number, line) in lines.enumerated() { try output.write(line: "\(number + 1)\t\(line)") }
    if let broken { try output.write(line: broken) }
    return broken == nil
  }
}

extension Way {
  static func path(_ text: String) -> [Way]? {
    var ways: [Way] = []
    for word in text.split(separator: ".") {
      let decisions = word.compactMap { $0 == "-" ? nil : $0.hexDigitValue.map(UInt8.init) }
      guard word == "-" || decisions.count == word.count, word.count <= 12 else { return nil }
      ways.append(Way(decisions: decisions))
    }
    return ways
  }

  var text: String {
    decisions.isEmpty ? "-" : decisions.map { String($0, radix: 16) }.joined()
  }
}

extension Output {
  fileprivate func write(
    _ walked: Walked, of world: Exploring, _ mutant: String?, _ seed: UInt64,
    took time: Duration
  ) throws {
    var words = ["wormhole-stress", "explore", "--world", world.rawValue]
    if let mutant { words += ["--mutant", mutant] }
    words += ["--path", walked.path.map(\.text).joined(separator: ".")]
    let line = words.joined(separator: " ")
    guard !isJSON else {
      let violations: [PropertyListValue] = walked.violation.map { [.string($0)] } ?? []
      var object: [String: PropertyListValue] = [
        "world": .string(world.rawValue), "isComplete": .boolean(walked.isComplete),
        "violations": .array(violations),
      ]
      let counts = [
        "states": walked.states, "steps": walked.steps, "depth": walked.depth,
        "wandered": walked.wandered, "seed": Int(seed),
      ]
      for (key, count) in counts { object[key] = .integer(Int64(count)) }
      if walked.violation != nil { object["replay"] = .string(line) }
      return try write(object)
    }
    let extent = walked.isComplete ? "all there are" : "every way of \(walked.depth) steps"
    let wandered =
      walked.wandered > 0
      ? "; then \(walked.wandered) steps at random, up to \(walked.deepest) deep, seed \(seed)" : ""
    try write(
      line: "\(world.rawValue): \(walked.states) states, \(extent)\(wandered); "
        + "\(time.inMilliseconds) ms: \(world.purpose)")
    guard let violation = walked.violation else { return }
    try write(line: "  \(violation), after \(walked.path.count) steps")
    tell("again: \(line)")
  }
}

extension Duration {
  fileprivate var inMilliseconds: Int { Int(self / .milliseconds(1)) }
}

extension Option {
  fileprivate static let world = Option(
    "world", .any("NAME"),
    "model to explore, or all: \(Exploring.allCases.map(\.rawValue).joined(separator: ", "))")
  fileprivate static let states = Option(
    "states", .any("N"), "number of states of all models together; a million by default")
  fileprivate static let wander = Option(
    "wander", .any("N"), "number of random paths for each model; 500 by default")
  fileprivate static let path = Option(
    "path", .any("PATH"), "path to replay, with a description of each step")
}
