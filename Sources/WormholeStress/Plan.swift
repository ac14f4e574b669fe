import SharedContainer
import Syscalls
import Wormhole

/// What one run is: all that its seed decides, and where it takes place.
struct Plan: Sendable {
  var seed: UInt64
  var processes = 6
  var channels = 4
  var duration = Duration.seconds(10)
  /// Where all of it lies.
  var directory: String
  /// The mechanism that is taken out of the workers; nil for none.
  var mutant: String?
  /// Whether calls fail, beside dying and stopping.
  var hasErrors = true
  /// Whether calls fail, die and stop at their fault points, beside what befalls from outside.
  var hasFaults = true

  /// What a seed's run is about: whatever is tried often fails sooner.
  enum Focus { case everything, channels, mail, accesses }

  var focus: Focus {
    switch seed % 3 {
    case 1: .channels
    case 2: .mail
    // Each access takes as long as many other calls.
    default: seed % 12 == 0 ? .accesses : .everything
    }
  }

  /// Whether the container lies on a small file system, which is full now and then.
  var isSmall = false
  /// Where that is mounted.
  var small: String { directory + "/small" }
  private var base: String { isSmall ? small : directory }
  var container: String { base + "/container" }
  /// Files that lie beside it.
  var files: SharedFiles { SharedFiles(base: base + "/files") }

  /// Where the others are from every second worker's point of view.
  var machine: Machine.Kind?

  /// The one whose inbox is removed and replaced; never the one that lives long.
  var bereft: Int { (spared + 1) % processes }

  /// The channel whose directory is removed and replaced.
  static let stray = "stray"

  /// The one that is never killed: whoever lives long shows what it keeps.
  var spared: Int { Int(seed) % processes }

  var stop: String { directory + "/stop" }
  func journal(_ worker: Int) -> String { "\(directory)/journal.\(worker)" }
  func name(_ worker: Int) -> String { "w\(worker)" }

  /// Whether it has a receiver for each kind of message, and not one for all.
  static func chooses(_ name: String) -> Bool {
    Int(name.dropFirst()).map { !$0.isMultiple(of: 2) } ?? false
  }

  /// The mechanism of that name, for being taken out.
  static func mutant(_ name: String) -> Mutants? {
    Mutants.named.first { $0.name == name }?.mutant
  }

  /// How the container is opened, by workers and by whoever looks afterwards.
  static func options() -> Wormhole.Options {
    var options = Wormhole.Options()
    // Whoever is stopped is passed by soon, and often: that is what is tried.
    options.lease = .milliseconds(50)
    // No message is given up: each life may be the end of an attempt.
    options.mail.attempts = 63
    options.mail.retryDelay = .milliseconds(10)
    if let text = Processes.environment(Self.clock), let seconds = Int64(text) {
      // Back and forth, a few times a second.
      options.environment.sinceEpoch = {
        let isMoved = Instant.now.nanoseconds / 300_000_000 % 2 == 0
        return Clocks.sinceEpoch + (isMoved ? seconds * 1_000_000_000 : 0)
      }
    }
    return options
  }

  /// By how many seconds the calendar's clock of a worker is moved.
  static let clock = "WORMHOLE_STRESS_CLOCK"
}
