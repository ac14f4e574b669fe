internal import SharedContainer
internal import Syscalls

/// The result of reading a member's presence and profile.
struct PresenceReading: Sendable {
  let isPresent: Bool
  let found: FoundProfile

  /// Reads a member's state; creates no file and notifies no process.
  init(
    _ name: String, in container: Container, _ folder: Container.Folder = .members
  ) throws(WormholeError) {
    guard let home = try container.existingMember(name, in: folder) else {
      (isPresent, found) = (false, .missing)
      return
    }
    do throws(Errno) {
      // A change between the two reads causes a notice and another read.
      isPresent = try home.isPresent()
      found = try home.readProfile()
    } catch {
      throw WormholeError(error, "look at member", name, at: home)
    }
  }

  var reachability: Wormhole.Reachability {
    if isPresent { return .running }
    return switch found {
    case .missing, .foreign: .neverJoined
    case .sound, .damaged: .notRunning
    }
  }

  var profile: Wormhole.Profile? {
    found.profile.map { Wormhole.Profile($0, reachability) }
  }
}
