internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The receiver of a request: a member by its name, or a guest by the name of its directory.
struct LiveAddress: Hashable, Sendable {
  let folder: Container.Folder
  let name: String

  /// Returns the receiver's directory; nil if there is none.
  func home(in storage: Container) throws(WormholeError) -> MemberDirectory? {
    try storage.existingMember(name, in: folder)
  }

  /// Returns whether the receiver runs, and its incarnation; a guest's only incarnation is its
  /// name.
  func look(in storage: Container) throws(WormholeError) -> PeerStatus {
    let sighting = try FoundMember(name, in: storage, folder)
    let incarnation =
      folder == .guests ? Incarnation(rawValue: name) : sighting.found.profile?.incarnation
    return PeerStatus(
      isPresent: sighting.isPresent, incarnation: incarnation, reachability: sighting.reachability)
  }

  struct PeerStatus: Sendable {
    let isPresent: Bool
    /// The incarnation of the last join.
    let incarnation: Incarnation?
    let reachability: Reachability

    /// The running incarnation.
    var living: Incarnation? { isPresent ? incarnation : nil }
  }

  /// Withdraws a file that was placed for the receiver; false if the file is gone.
  func withdraw(_ file: LiveName, from incarnation: Incarnation, in storage: Container) -> Bool {
    // The directory is opened again: a requester that waits for many peers would otherwise keep as
    // many directories open.
    guard let folder = try? home(in: storage)?.live(incarnation) else { return false }
    return (try? folder.descriptor.unlink(file.text)) != nil
  }
}
