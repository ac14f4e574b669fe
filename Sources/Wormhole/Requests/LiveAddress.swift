internal import SharedContainer
internal import Syscalls

/// Whom a question is put to: a member by its name, or a guest by that of its directory.
struct LiveAddress: Hashable, Sendable {
  let folder: Container.Folder
  let name: String

  /// Its directory; nil if there is none.
  func home(in container: Container) throws(WormholeError) -> MemberDirectory? {
    try container.existingMember(name, in: folder)
  }

  /// Whether it lives, and as which incarnation; a guest has one, which is its name.
  func look(in container: Container) throws(WormholeError) -> Look {
    let sighting = try Sighting(name, in: container, folder)
    let incarnation =
      folder == .guests ? Incarnation(rawValue: name) : sighting.found.profile?.incarnation
    return Look(
      isPresent: sighting.isPresent, incarnation: incarnation, reachability: sighting.reachability)
  }

  struct Look: Sendable {
    let isPresent: Bool
    /// The one that has joined last.
    let incarnation: Incarnation?
    let reachability: Wormhole.Reachability

    /// The one that lives.
    var living: Incarnation? { isPresent ? incarnation : nil }
  }

  /// Takes back what was put there; false if it is not there any more.
  func withdraw(_ file: LiveName, from incarnation: Incarnation, in container: Container) -> Bool {
    // Looked up anew: whoever waits for many would keep as many directories open.
    guard let folder = try? home(in: container)?.live(incarnation) else { return false }
    return (try? folder.descriptor.unlink(file.text)) != nil
  }
}
