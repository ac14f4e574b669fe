internal import SharedContainer
internal import Syscalls

/// The receiver of a request: a member by its name, or a guest by the name of its directory.
struct LiveAddress: Hashable, Sendable {
  let folder: Container.Folder
  let name: String

  /// Returns the receiver's directory; nil if there is none.
  func home(in container: Container) throws(WormholeError) -> MemberDirectory? {
    try container.existingMember(name, in: folder)
  }

  /// Returns whether the receiver runs, and its incarnation; a guest's only incarnation is its
  /// name.
  func look(in container: Container) throws(WormholeError) -> PeerStatus {
    let sighting = try PresenceReading(name, in: container, folder)
    let incarnation =
      folder == .guests ? Incarnation(rawValue: name) : sighting.found.profile?.incarnation
    return PeerStatus(
      isPresent: sighting.isPresent, incarnation: incarnation, reachability: sighting.reachability)
  }

  struct PeerStatus: Sendable {
    let isPresent: Bool
    /// The incarnation of the last join.
    let incarnation: Incarnation?
    let reachability: Wormhole.Reachability

    /// The running incarnation.
    var living: Incarnation? { isPresent ? incarnation : nil }
  }

  /// Withdraws a file that was placed for the receiver; false if the file is gone.
  func withdraw(_ file: LiveName, from incarnation: Incarnation, in container: Container) -> Bool {
    // The directory is opened again: a requester that waits for many peers would otherwise keep as
    // many directories open.
    guard let folder = try? home(in: container)?.live(incarnation) else { return false }
    return (try? folder.descriptor.unlink(file.text)) != nil
  }
}
