internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The result of reading a member's presence and profile.
struct FoundMember: Sendable {
  let isPresent: Bool
  let found: FoundProfile
  private let home: MemberDirectory?

  /// Returns whether a member is present, without reading its profile.
  static func isPresent(
    _ name: String, in storage: Container, _ folder: Container.Folder
  ) throws(WormholeError) -> Bool {
    guard let home = try storage.existingMember(name, in: folder) else { return false }
    return try naming("read the presence of member", name, at: home, home.isPresent())
  }

  /// Reads a member's state; creates no file and notifies no process.
  init(
    _ name: String, in storage: Container, _ folder: Container.Folder = .members
  ) throws(WormholeError) {
    guard let home = try storage.existingMember(name, in: folder) else {
      (isPresent, found, self.home) = (false, .missing, nil)
      return
    }
    // A change between the two reads causes a notice and another read.
    (isPresent, found) = try naming("read the presence of member", name, at: home) {
      () throws(Errno) in (try home.isPresent(), try home.readProfile())
    }
    self.home = home
  }

  var reachability: Reachability {
    if isPresent { return .running }
    return switch found {
    case .missing, .foreign: .neverJoined
    case .sound, .damaged: .notRunning
    }
  }

  /// The member's profile, for which the member's home is read too.
  var profile: Profile? {
    get throws(WormholeError) {
      guard let profile = found.profile, let home else { return nil }
      return try naming(
        "read the home of member", profile.name, at: home,
        Profile(profile, reachability, try home.elsewhere))
    }
  }
}
