public import FoundationEssentials
public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// How well a member can be reached.
  @nonexhaustive
  public enum Reachability: String, Hashable, Sendable, CaseIterable {
    /// Nobody has ever joined under the name.
    case notReachable
    /// It has joined before and does not run: what is sent to it waits.
    case backgroundOnly
    /// It runs. It may be stopped; see ``Profile/isStopped``.
    case immediatelyReachable
  }

  /// What was known of a member at one moment.
  public struct Profile: Hashable, Sendable {
    /// The name that it has joined as.
    public let name: String
    /// What tells its latest joining from all before.
    public let incarnation: Incarnation
    /// The number of the process that joined last, in whatever container that ran.
    public let process: Int32
    /// The name of the program.
    public let program: String
    /// When it joined last, by its own clock.
    public let since: Date
    /// What it tells of itself.
    public let info: [String: String]
    /// How well it could be reached; not at all if its directory has been removed.
    public private(set) var reachability: Reachability
    /// Whether its process is stopped, as by SIGSTOP; nil if it does not run, or cannot be seen
    /// from here.
    public private(set) var isStopped: Bool?

    /// Whether its process lives, as the kernel has it.
    public var isRunning: Bool { reachability == .immediatelyReachable }

    init(_ profile: MemberProfile, _ reachability: Reachability) {
      name = profile.name
      incarnation = profile.incarnation
      process = profile.process
      program = profile.program
      since = profile.since
      info = profile.info
      self.reachability = reachability
      isStopped =
        switch reachability == .immediatelyReachable ? profile.holder.state : .gone {
        case .stopped: true
        case .running: false
        case .gone, .unknown: nil
        }
    }

    /// The same member, of whom no profile can be had any more.
    init(_ profile: Profile, _ reachability: Reachability) {
      self = profile
      self.reachability = reachability
      isStopped = nil
    }
  }
}

/// What a look at a member has found.
struct Sighting: Sendable {
  let isPresent: Bool
  let found: FoundProfile

  /// Looks at a member; nothing is made, and nobody hears of it.
  init(
    _ name: String, in container: Container, _ folder: Container.Folder = .members
  ) throws(WormholeError) {
    guard let home = try container.existingMember(name, in: folder) else {
      (isPresent, found) = (false, .missing)
      return
    }
    do throws(Errno) {
      // What changes between the two is told of, and looked at again.
      isPresent = try home.isPresent()
      found = try home.readProfile()
    } catch {
      throw WormholeError(error, "look at member", name)
    }
  }

  var reachability: Wormhole.Reachability {
    if isPresent { return .immediatelyReachable }
    return switch found {
    case .missing, .foreign: .notReachable
    case .sound, .damaged: .backgroundOnly
    }
  }

  var profile: Wormhole.Profile? {
    found.profile.map { Wormhole.Profile($0, reachability) }
  }
}
