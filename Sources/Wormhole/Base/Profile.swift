public import FoundationEssentials
public import WormholeContainerStorage
internal import WormholeSyscalls

/// The reachability of a member.
@nonexhaustive
public enum Reachability: String, Hashable, Sendable, CaseIterable {
  /// No process has ever joined under the name.
  case neverJoined
  /// The member has joined before and does not run: messages to it wait.
  case notRunning
  /// The member runs. Its process may be suspended; see ``Profile/isStopped``.
  case running
}

/// The properties of a member at one moment.
public struct Profile: Hashable, Sendable {
  /// The name under which the member has joined.
  public let name: String
  /// The incarnation of the latest join; it differs from all earlier incarnations.
  public let incarnation: Incarnation
  /// The ID of the process that joined last, in the PID namespace of that process.
  public let processID: Int32
  /// The name of the program.
  public let program: String
  /// The time of the last join, by the member's clock.
  public let joinedAt: Date
  /// The name of another machine that is the member's home; nil for a member of this machine.
  ///
  /// Empty if the name cannot be read. For a member of another machine, the other properties
  /// contain what a carrier has recorded on this machine.
  public let machine: String?
  /// The information that the member publishes about itself.
  public let info: [String: String]
  /// Whether a carrier has written the profile, and this machine has not become the home since.
  package let isCarried: Bool
  /// The reachability at that moment; `neverJoined` if the member's directory has been removed.
  public private(set) var reachability: Reachability
  /// Whether the member's process is suspended, for instance by SIGSTOP; nil if the process does
  /// not run or cannot be seen from here.
  public private(set) var isStopped: Bool?

  /// Whether the member's process lives, according to the kernel.
  public var isRunning: Bool { reachability == .running }

  init(_ profile: MemberProfile, _ reachability: Reachability, _ elsewhere: Elsewhere? = nil) {
    name = profile.name
    incarnation = profile.incarnation
    processID = profile.process
    program = profile.program
    joinedAt = profile.since
    info = profile.info
    isCarried = profile.isCarried
    machine = elsewhere.map { $0.machine ?? "" }
    self.reachability = reachability
    isStopped =
      switch reachability == .running ? profile.holder.state : .gone {
      case .stopped: true
      case .running: false
      case .gone, .unknown: nil
      }
  }

  /// The same member, after its profile has become unavailable.
  init(_ profile: Profile, _ reachability: Reachability) {
    self = profile
    self.reachability = reachability
    isStopped = nil
  }
}
