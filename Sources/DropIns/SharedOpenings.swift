internal import SharedContainer
internal import Syscalls
package import Wormhole

/// The containers that a process has opened for its drop-in modules, one opening for each.
///
/// The originals are made of calls that name a group and keep nothing open. An opening holds
/// watches and descriptors, so all calls of one process share one, for as long as it runs.
package enum SharedOpenings {
  private static let opened = Monitor(State())

  private struct State {
    /// By the bytes of their paths, as texts that look alike may be different ones.
    var holes: [[UInt8]: Wormhole] = [:]
    /// The process that has opened them: a copy of it has to open anew.
    var process: Int32?
  }

  /// The opening of a group's container, which is made if need be.
  package static func group(_ identifier: String) throws(WormholeError) -> Wormhole {
    let location = try ContainerLocation(group: identifier)
    return try opening(location.container) { (options) throws(WormholeError) in
      try Wormhole(group: identifier, options: options)
    }
  }

  /// The opening of the container at a path, which is made if need be.
  package static func directory(_ path: String) throws(WormholeError) -> Wormhole {
    try opening(path) { (options) throws(WormholeError) in
      try Wormhole(directory: path, options: options)
    }
  }

  private static func opening(
    _ path: String, _ open: (Wormhole.Options) throws(WormholeError) -> Wormhole
  ) throws(WormholeError) -> Wormhole {
    let (process, place) = (Int32(Processes.current), Array(path.utf8))
    return try opened.withLock { state throws(WormholeError) in
      if state.process != process { state = State(process: process) }
      // Whoever has removed the directory and goes on, as tests do, means a new container.
      if let hole = state.holes[place], hole.container.isInPlace { return hole }
      var options = Wormhole.Options()
      options.log = { DropInLog.tell($0) }
      let hole = try open(options)
      state.holes[place] = hole
      return hole
    }
  }
}
