import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The parameters of one run: all choices of its seed, and its location.
struct Plan: Sendable {
  var seed: UInt64
  var processes = 6
  var channels = 4
  var duration = Duration.seconds(10)
  /// The directory of all files of the run.
  var directory: String
  /// The mechanism that is disabled in the workers; nil for none.
  var mutant: String?
  /// Whether calls fail, in addition to deaths and suspensions.
  var hasErrors = true
  /// Whether processes fail, die and suspend themselves at fault points, in addition to harm from
  /// outside.
  var hasFaults = true

  /// The subject of a seed's run: an operation that is tried often fails sooner.
  enum Focus { case everything, channels, mail, accesses }

  var focus: Focus {
    switch seed % 3 {
    case 1: .channels
    case 2: .mail
    // Each access takes as long as many other calls.
    default: seed % 12 == 0 ? .accesses : .everything
    }
  }

  /// Whether the container is on a small file system, which is full now and then.
  var isSmall = false
  /// The mount point of the small file system.
  var small: String { directory + "/small" }
  private var base: String { isSmall ? small : directory }
  var container: String { base + "/container" }
  /// The shared files beside the container.
  var files: SharedFiles { SharedFiles(base: base + "/files") }

  /// The environment of the run; if it is a namespace, every second worker runs inside.
  var machine: Machine.Kind?

  /// The worker whose inbox is removed and replaced; never the spared worker.
  var bereft: Int { (spared + 1) % processes }

  /// The channel whose directory is removed and replaced.
  static let stray = "stray"

  /// The queue on which all workers work.
  static let queue = "jobs"

  /// The worker that is never killed: a long-lived process reveals resources that are never
  /// released.
  var spared: Int { Int(seed) % processes }

  var stop: String { directory + "/stop" }
  func journal(_ worker: Int) -> String { "\(directory)/journal.\(worker)" }
  func name(_ worker: Int) -> String { "w\(worker)" }

  /// Returns whether a member has one receiver for each kind of message, instead of one for all
  /// kinds.
  static func chooses(_ name: String) -> Bool {
    Int(name.dropFirst()).map { !$0.isMultiple(of: 2) } ?? false
  }

  /// Returns the mechanism of a name, in order to disable the mechanism.
  static func mutant(_ name: String) -> Mutants? { Mutants(named: name) }

  /// Returns the options with which the workers and the later checks open the container.
  static func options() -> Options {
    var options = Options()
    // With a short lease, suspended holders are overtaken soon and often: the subject of the test.
    options.lease = .milliseconds(50)
    // No message is dead-lettered: each death of a process may end an attempt.
    options.mailbox.attempts = 63
    options.mailbox.retryDelay = .milliseconds(10)
    if let text = Processes.environment(Self.clock), let seconds = Int64(text) {
      // The clock moves back and forth, a few times a second.
      options.environment.sinceEpoch = {
        let isMoved = Instant.now.nanoseconds / 300_000_000 % 2 == 0
        return Clocks.sinceEpoch + (isMoved ? seconds * 1_000_000_000 : 0)
      }
    }
    return options
  }

  /// The variable with the number of seconds by which a worker's calendar clock is moved.
  static let clock = "WORMHOLE_STRESS_CLOCK"
}
