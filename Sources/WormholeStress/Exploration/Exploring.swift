import SharedContainer

/// What `explore` walks through: small worlds, each with a purpose of its own.
///
/// Those that have fewer worlds than their share come first, and the others take what they leave.
enum Exploring: String, CaseIterable {
  case lockTwo = "lock-two"
  case lockPower = "lock-power"
  case lockThree = "lock-three"
  case lockHeal = "lock-heal"
  case mail = "mail"
  case mailOrder = "mail-order"
  case mailBatch = "mail-batch"
  case mailHeard = "mail-heard"
  case mailPoison = "mail-poison"
  case mailKinds = "mail-kinds"
  case mailTwo = "mail-two"

  var purpose: String {
    switch self {
    case .lockTwo: "two processes change a value twice each, and one may die"
    case .lockPower: "the same, with the power cut at any moment"
    case .lockThree: "three processes change a value, and two may die"
    case .lockHeal: "two processes change a value that is damaged"
    case .mailOrder: "two senders, and a receiver that lists its inbox and may die"
    case .mailBatch: "a batch that is taken back, a message, and a receiver that may die twice"
    case .mail: "two senders, two who take back, and a receiver that lists its inbox"
    case .mailHeard: "a sender, and a receiver that hears of what comes, and has lulls in between"
    case .mailPoison: "a batch with a message that ends whoever handles it, and one that does not"
    case .mailTwo: "two receivers of one process"
    case .mailKinds: "two receivers of one process, of which one wants both that are sent"
    }
  }

  /// How much of the whole is this one's, compared with the others.
  private var share: Int {
    switch self {
    case .lockTwo: 12
    case .lockPower: 26
    case .lockThree: 28
    case .lockHeal: 4
    case .mailOrder: 8
    case .mailBatch: 8
    case .mail: 10
    case .mailHeard: 10
    case .mailPoison: 2
    case .mailTwo: 5
    case .mailKinds: 8
    }
  }

  /// What can be taken out here.
  static let mutants = [
    "no-fence", "no-removal", "steal-without-generation", "no-file-sync", "no-directory-sync",
    "heal-by-rename", "trust-open-file", "read-before-claim", "trust-listing", "no-progress",
    "cancel-by-putting-back", "no-end-of-lull",
  ]

  /// Its part of what is left for some; what one of them does not need the next ones get.
  func share(of states: Int, among worlds: ArraySlice<Exploring>) -> Int {
    states * share / max(1, worlds.reduce(0) { $0 + $1.share })
  }

  /// Walks through the shortest ways, all of them, and then wanders as many longer ones.
  func walk(states: Int, wandering runs: Int, seed: UInt64, _ mutants: Mutants) -> Walked {
    return switch world(mutants) {
    case .lock(let world): walk(world, states, runs, seed)
    case .mail(let world): walk(world, states, runs, seed)
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
    found.cuts += deeper.cuts
    found.violation = deeper.violation
    found.path = deeper.path
    return found
  }

  /// Goes one way again; answers what it breaks.
  func replay(_ path: [Way], _ mutants: Mutants, _ tell: (String) -> Void) -> String? {
    switch world(mutants) {
    case .lock(let world): Exploration.replay(world, path, tell)
    case .mail(let world): Exploration.replay(world, path, tell)
    }
  }

  private enum World {
    case lock(LockWorld)
    case mail(MailWorld)
  }

  private func world(_ mutants: Mutants) -> World {
    var lock = LockWorld.Rules()
    var mail = MailWorld.Rules()
    (lock.mutants, mail.mutants) = (mutants, mutants)
    switch self {
    case .lockTwo: (lock.updates, lock.hasPower, lock.generations) = (2, false, 2)
    case .lockPower: (lock.updates, lock.generations) = (2, 2)
    case .lockThree: (lock.processes, lock.deaths, lock.hasPower) = (3, 2, false)
    case .lockHeal: lock.isDamaged = true
    case .mailOrder: (mail.files, mail.cancelled) = ([[1, 1], [1]], [])
    case .mailBatch: (mail.files, mail.cancelled, mail.deaths) = ([[2], [1]], [0], 2)
    case .mail: break
    case .mailHeard: (mail.files, mail.cancelled, mail.hears) = ([[1, 1]], [1], true)
    case .mailPoison:
      (mail.files, mail.cancelled, mail.deaths) = ([[3], [1]], [], 0)
      mail.poison = MailWorld.Piece(file: 0, index: 1)
    case .mailTwo: (mail.receivers, mail.files, mail.failures) = (2, [[2, 1]], 1)
    case .mailKinds:
      (mail.receivers, mail.files, mail.cancelled) = (2, [[], [1, 1]], [])
      (mail.chooses, mail.hears, mail.deaths) = (true, true, 0)
    }
    return rawValue.hasPrefix("lock") ? .lock(LockWorld(lock)) : .mail(MailWorld(mail))
  }
}

/// What a walk has come to.
struct Walked: Sendable {
  var states: Int
  var steps: Int
  var cuts: Int
  var depth: Int
  var isComplete: Bool
  var violation: String?
  var path: [Way]
  /// Steps that chance has decided, and after how many of them the longest way was over.
  var wandered = 0
  var deepest = 0

  init<World>(_ result: Exploration<World>.Result) {
    (states, steps, cuts) = (result.states, result.steps, result.cuts)
    (depth, isComplete) = (result.depth, result.isComplete)
    (violation, path) = (result.violation, result.path)
  }
}
