package import Wormhole
internal import WormholeContainerStorage

/// The container that all programs of a user share, whatever groups they belong to and whatever
/// WORMHOLE_CONTAINER contains.
///
/// State that devices have once for the whole system, such as Darwin notifications, is stored here.
package enum UserContainer {
  package static func container() throws(WormholeError) -> SharedContainer {
    try SharedOpenings.group(ContainerLocation.userGroup)
  }
}
