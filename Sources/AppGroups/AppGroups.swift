@_exported public import DropIns
@_exported public import Foundation
internal import SharedContainer

/// What holds for all groups of this process.
public enum AppGroups {
  /// The directory that the groups of this process lie in; nil: below the user's own state
  /// directory, or `WORMHOLE_ROOT`.
  ///
  /// For tests: set it before the first group is used. What is open already stays where it is.
  public static var root: String? {
    get { ContainerLocation.givenRoot }
    set { ContainerLocation.givenRoot = newValue }
  }
}
