package import Wormhole
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The containers that a process has opened for its drop-in modules, one instance for each
/// container.
///
/// The originals consist of calls that name a group and keep nothing open. An instance holds
/// watches and descriptors, so all calls of a process share one instance of a container, for as
/// long as the process runs.
package enum SharedOpenings {
  private static let opened = Monitor(State())

  private struct State {
    /// By the bytes of their paths, because texts that look alike may be different paths.
    var holes: [[UInt8]: SharedContainer] = [:]
    /// The process that has opened the containers: a forked child must open them again.
    var process: Int32?
  }

  /// Whether a group has a container; creates none.
  package static func hasContainer(_ identifier: String?) -> Bool {
    guard let identifier, let location = try? ContainerLocation(group: identifier) else {
      return false
    }
    return (try? Descriptor.status(ofPath: location.container)) != nil
  }

  /// Returns the instance of the container that all programs of a user share, whatever groups they
  /// belong to and whatever WORMHOLE_CONTAINER contains.
  ///
  /// State that devices have once for the whole system, such as Darwin notifications, is stored
  /// there.
  package static func user() throws(WormholeError) -> SharedContainer {
    try group(ContainerLocation.userGroup)
  }

  /// Returns the instance of a group's container.
  ///
  /// - Parameter creates: whether a missing container is created.
  package static func group(
    _ identifier: String?, creates: Bool = true
  ) throws(WormholeError) -> SharedContainer {
    guard let identifier else {
      throw WormholeError(
        .invalidName, "open the container of group", "", because: "the group's identifier is nil")
    }
    let location = try ContainerLocation(group: identifier)
    let (process, place) = (Int32(Processes.current), Array(location.container.utf8))
    return try opened.withLock { state throws(WormholeError) in
      if state.process != process { state = State(process: process) }
      // A program that removes the directory and continues, as tests do, wants a new container.
      if let container = state.holes[place], container.storage.isInPlace { return container }
      var options = Options(createsIfMissing: creates)
      options.log = { DropInLog.tell($0) }
      let container = try SharedContainer(group: identifier, options: options)
      state.holes[place] = container
      return container
    }
  }
}
