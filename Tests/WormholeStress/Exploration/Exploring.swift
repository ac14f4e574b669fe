import WormholeContainerStorage

/// The models that `explore` searches: small ones, each with a purpose of its own.
///
/// Models with fewer states than their share come first; the following models take the remaining
/// states.
enum Exploring: String, CaseIterable {
  case lockTwo = "lock-two"
  case lockThree = "lock-three"
  case mail = "mail"
  case mailHeard = "mail-heard"
  case mailKinds = "mail-kinds"
  case mailTwo = "mail-two"
  case queueTwo = "queue-two"
  case queueKeys = "queue-keys"
  case queueThree = "queue-three"
  case queueLate = "queue-late"

  var purpose: String {
    switch self {
    case .lockTwo: "two processes change a value twice each, and one may die"
    case .lockThree: "three processes change a value, and two may die"
    case .mail: "two senders, cancellations, and a receiver that lists its inbox and may die twice"
    case .mailHeard: "a sender, and a receiver that is notified, with lulls, and may die twice"
    case .mailTwo: "two receivers of one process, and messages that fail"
    case .mailKinds: "two receivers of one process, and one accepts both messages"
    case .queueTwo: "two workers, of which one may die, be late, fail or requeue"
    case .queueKeys: "the same, with two messages of one key"
    case .queueThree: "three workers, and three messages of one key"
    case .queueLate: "two workers, and an urgent message of the same key"
    }
  }

  /// The model's weight in the total number of states, relative to the other models.
  private var share: Int {
    switch self {
    case .lockTwo: 12
    case .lockThree: 28
    // Enough for all states, also of half a million together.
    case .mail: 16
    case .mailHeard: 13
    case .mailTwo: 7
    case .mailKinds: 8
    case .queueTwo: 4
    case .queueKeys: 12
    case .queueThree: 20
    case .queueLate: 8
    }
  }

  /// The mechanisms that can be disabled here.
  ///
  /// These are the mechanisms of the machines, and those of executors that only show in a model:
  /// with lost notices or ordering keys. Schedules show the others in the library itself.
  static let mutants = [
    "no-fence", "no-removal", "trust-listing", "no-end-of-lull", "trust-claim", "claim-any-key",
    "return-keys-to-inbox", "forget-returned",
  ]

  /// Returns the model's share of the remaining states; the following models get the states that a
  /// model does not need.
  func share(of states: Int, among worlds: ArraySlice<Exploring>) -> Int {
    states * share / max(1, worlds.reduce(0) { $0 + $1.share })
  }

  /// Searches all of the shortest paths, and then follows as many longer random paths as requested.
  func walk(states: Int, wandering runs: Int, seed: UInt64, _ mutant: Mutants?) -> Walked {
    return switch world(mutant) {
    case .lock(let world): walk(world, states, runs, seed)
    case .mail(let world): walk(world, states, runs, seed)
    case .queue(let world): walk(world, states, runs, seed)
    }
  }

  private func walk<World: ModelWorld>(
    _ world: World, _ states: Int, _ runs: Int, _ seed: UInt64
  ) -> Walked {
    var walk = Exploration(world)
    var found = Walked(walk.walk(states: states))
    guard found.violation == nil, runs > 0 else { return found }
    var wander = Exploration(world)
    let deeper = wander.wander(runs, steps: 600, seed: seed)
    found.wandered = deeper.steps
    found.deepest = deeper.depth
    found.violation = deeper.violation
    found.path = deeper.path
    return found
  }

  /// Follows one path again; returns the broken promise.
  func replay(_ path: [Way], _ mutant: Mutants?, _ tell: (String) -> Void) -> String? {
    switch world(mutant) {
    case .lock(let world): Exploration.replay(world, path, tell)
    case .mail(let world): Exploration.replay(world, path, tell)
    case .queue(let world): Exploration.replay(world, path, tell)
    }
  }

  private enum World {
    case lock(LockWorld)
    case mail(MailWorld)
    case queue(QueueWorld)
  }

  private func world(_ mutant: Mutants?) -> World {
    var lock = LockWorld.Rules()
    var mail = MailWorld.Rules()
    var queue = QueueWorld.Rules()
    (lock.mutant, mail.mutant, queue.mutant) = (mutant, mutant, mutant)
    switch self {
    case .lockTwo: (lock.updates, lock.generations) = (2, 2)
    case .lockThree: (lock.processes, lock.deaths) = (3, 2)
    case .mail: break
    case .mailHeard: (mail.messages, mail.hears) = ([2], true)
    case .mailTwo:
      (mail.receivers, mail.messages, mail.deaths) = (2, [2], 1)
      // A message that fails twice is dead-lettered.
      (mail.failures, mail.attempts) = (2, 2)
    case .mailKinds:
      (mail.receivers, mail.messages, mail.cancelled) = (2, [0, 2], [])
      (mail.chooses, mail.hears, mail.deaths) = (true, true, 0)
    case .queueTwo, .queueKeys:
      (queue.deaths, queue.expiries, queue.failures, queue.requeues) = (1, 1, 1, 1)
      if self == .queueTwo { queue.keys = [nil, nil] }
    case .queueThree: (queue.workers, queue.keys, queue.failures) = (3, [0, 0, 0], 1)
    case .queueLate: (queue.keys, queue.urgent, queue.expiries) = ([0, 0], 1, 1)
    }
    if rawValue.hasPrefix("queue") { return .queue(QueueWorld(queue)) }
    return rawValue.hasPrefix("lock") ? .lock(LockWorld(lock)) : .mail(MailWorld(mail))
  }
}

/// The result of a search.
struct Walked: Sendable {
  var states: Int
  var steps: Int
  var depth: Int
  var isComplete: Bool
  var violation: String?
  var path: [Way]
  /// The number of random steps, and the length of the longest random path.
  var wandered = 0
  var deepest = 0

  init<World>(_ result: Exploration<World>.Result) {
    (states, steps) = (result.states, result.steps)
    (depth, isComplete) = (result.depth, result.isComplete)
    (violation, path) = (result.violation, result.path)
  }
}
