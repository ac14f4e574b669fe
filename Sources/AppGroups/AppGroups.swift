@_exported public import Foundation
internal import WormholeContainerStorage
@_exported public import WormholeDropIns

/// The settings for all groups of this process.
public enum AppGroups {
  /// The parent directory of this process's groups; nil: below the user's own state directory, or
  /// `WORMHOLE_ROOT`.
  ///
  /// For tests: set the property before the first group is used. A container that is open already
  /// remains at its location.
  public static var root: String? {
    get { ContainerLocation.givenRoot }
    set { ContainerLocation.givenRoot = newValue }
  }
}
