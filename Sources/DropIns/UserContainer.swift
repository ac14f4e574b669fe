internal import SharedContainer
package import Wormhole

/// The container that all programs of a user meet in, whatever groups they belong to and whatever
/// WORMHOLE_CONTAINER says.
///
/// What devices have once for the whole system, as Darwin notifications, lies here.
package enum UserContainer {
  /// No identifier of a group that a program would choose.
  package static let group = "wormhole.user"

  package static func hole() throws(WormholeError) -> Wormhole { try SharedOpenings.group(group) }
}
