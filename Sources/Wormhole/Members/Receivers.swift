internal import SharedContainer

/// The directories of the receivers of sent messages.
final class Receivers: Service {
  private let known = MemberDirectoryCache<String>()

  /// Returns the directory of a member, and makes it if the member has never joined.
  func home(
    of name: String, in container: Container
  ) throws(WormholeError) -> MemberDirectory {
    if let home = known.home(of: name) { return home }
    let home = try container.member(name)
    known.keep(home, of: name)
    return home
  }

  func forget(_ home: MemberDirectory) { known.forget(home.name) }
}

extension Wormhole {
  var receivers: Receivers { services.get { Receivers() } }
}
