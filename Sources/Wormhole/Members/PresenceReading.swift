internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The result of reading a member's presence and profile.
struct PresenceReading: Sendable {
  let isPresent: Bool
  let found: FoundProfile
  let elsewhere: Elsewhere?

  /// Reads a member's state; creates no file and notifies no process.
  init(
    _ name: String, in storage: Container, _ folder: Container.Folder = .members
  ) throws(WormholeError) {
    guard let home = try storage.existingMember(name, in: folder) else {
      (isPresent, found, elsewhere) = (false, .missing, nil)
      return
    }
    do throws(Errno) {
      // A change between the two reads causes a notice and another read.
      isPresent = try home.isPresent()
      found = try home.readProfile()
      elsewhere = try home.elsewhere
    } catch {
      throw WormholeError(error, "read the presence of member", name, at: home)
    }
  }

  var reachability: Reachability {
    if isPresent { return .running }
    return switch found {
    case .missing, .foreign: .neverJoined
    case .sound, .damaged: .notRunning
    }
  }

  var profile: Profile? {
    found.profile.map { Profile($0, reachability, elsewhere) }
  }
}
