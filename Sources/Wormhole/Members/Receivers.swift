internal import WormholeContainerStorage

/// The directories of the receivers of sent messages.
final class Receivers: Service {
  private let known = MemberDirectoryCache<String>()

  /// Returns the directory of a member, and makes it if the member has never joined.
  func home(
    of name: String, in storage: Container
  ) throws(WormholeError) -> MemberDirectory {
    if let home = known.home(of: name) { return home }
    let home = try storage.member(name)
    known.keep(home, of: name)
    return home
  }

  func forget(_ home: MemberDirectory) { known.forget(home.name) }
}

extension SharedContainer {
  var receivers: Receivers { services.get { Receivers() } }
}
