internal import WormholeContainerStorage

/// The directories of the receivers of sent messages.
final class Receivers: Service {
  private let known = MemberDirectoryCache<Key>()

  private struct Key: Hashable {
    let folder: Container.Folder
    let name: String
  }

  /// Returns the directory of a member, and makes it if the member has never joined; or that of a
  /// queue.
  func home(
    of peer: Peer, in storage: Container
  ) throws(WormholeError) -> MemberDirectory {
    let key = Key(folder: peer.folder, name: peer.name)
    if let home = known.home(of: key) { return home }
    let home = try storage.member(peer.name, in: peer.folder)
    known.keep(home, of: key)
    return home
  }

  func forget(_ home: MemberDirectory) {
    known.forget(Key(folder: home.folder, name: home.name))
  }
}

extension SharedContainer {
  var receivers: Receivers { services.get { Receivers() } }
}
