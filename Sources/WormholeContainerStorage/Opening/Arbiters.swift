package import WormholeSyscalls

/// Selects the container that orders the accesses to a path: the group's container for files in the
/// directory of a group, and otherwise one container for each user, see
/// ``ContainerLocation/userGroup``.
///
/// The choice depends only on the user, the path and the location of the groups, and not on how a
/// program was started: any two programs of a user choose the same container.
package final class Arbiters: Sendable {
  /// The shared instance of the process.
  package static let shared = OneForEachProcess { Arbiters() }

  private static var userGroup: String { ContainerLocation.userGroup }

  private let options: ContainerOptions
  private let root: String?
  private let rooms = Monitor<[String: AccessDirectory]>([:])

  package convenience init() { self.init(ContainerOptions(), root: nil) }

  /// - Parameter root: the root of the groups, in place of the environment's root.
  package init(_ options: ContainerOptions, root: String?) {
    self.options = options
    self.root = root
  }

  private func location(_ group: String) throws(WormholeError) -> ContainerLocation {
    try ContainerLocation(group: group, root: root, options.environment)
  }

  /// The directory of all groups.
  private func groups() throws(WormholeError) -> String {
    try ContainerLocation(inRootOf: Self.userGroup, root: root).groups
  }

  /// Returns the access directory for the user's files that belong to no group.
  private func userRoom() throws(WormholeError) -> AccessDirectory {
    try room(location(Self.userGroup)) { (location) throws(WormholeError) in
      try location.prepare(.owner)
      return try Container.open(location.container, options: self.options)
    }
  }

  /// Returns the access directory for a path without links.
  ///
  /// - Parameter creates: whether a missing container of a group is created.
  package func room(
    for path: AccessPath, creates: Bool = true
  ) throws(WormholeError) -> AccessDirectory {
    guard let group = try group(of: path), group != Self.userGroup else { return try userRoom() }
    return try room(location(group)) { (location) throws(WormholeError) in
      try self.open(location, create: creates)
    }
  }

  /// Nil if no file can be in the directory.
  ///
  /// Here and below, a temporary failure of the system is an error: with a wrong container,
  /// conflicting accesses would not meet.
  private func groupsDirectory() throws(WormholeError) -> AccessPath? {
    let path = try groups()
    do throws(Errno) {
      if let end = try AccessPath.end(of: path) { return end }
    } catch {
      throw WormholeError(proc: error, "coordinate", path)
    }
    do throws(WormholeError) {
      return try AccessPath.resolve(path).last
    } catch {
      guard error.mayPass else { return nil }
      throw error
    }
  }

  private func group(of path: AccessPath) throws(WormholeError) -> String? {
    guard let groups = try groupsDirectory(), groups.isAtOrAbove(path) else { return nil }
    let rest = path.text.utf8.dropFirst(groups.text.utf8.count).drop { $0 == UInt8(ascii: "/") }
    let name = String(decoding: rest.prefix { $0 != UInt8(ascii: "/") }, as: UTF8.self)
    let status = try naming("coordinate", path.text) { () throws(Errno) in
      try ignoring(Errno.nowhere) { () throws(Errno) in
        try Descriptor.status(ofPath: groups.text + "/" + name)
      }
    }
    // Anything that is not a directory belongs to no group.
    return status?.kind == .directory ? EscapedName.unescape(name) : nil
  }

  /// A group's container records whether several users share it; without a record, both ways are
  /// tried.
  private func open(
    _ location: ContainerLocation, create: Bool
  ) throws(WormholeError) -> Container {
    if let sharing = Container.recordedSharing(at: location.container) {
      var options = options
      options.sharing = sharing
      return try Container.open(location.container, create: create, options: options)
    }
    do throws(WormholeError) {
      return try Container.open(location.container, create: create, options: options)
    } catch {
      guard error.code == .refused else { throw error }
      var options = options
      options.sharing = .group
      guard let container = try? Container.open(location.container, create: false, options: options)
      else { throw error }
      return container
    }
  }

  private func room(
    _ location: ContainerLocation,
    _ open: (ContainerLocation) throws(WormholeError) -> Container
  ) throws(WormholeError) -> AccessDirectory {
    let path = location.container
    if let room = rooms.withLock({ $0[path] }), room.container.isInPlace { return room }
    let fresh = try AccessDirectory(open(location))
    return rooms.withLock { rooms in
      if let other = rooms[path], other.container.identity == fresh.container.identity {
        return other
      }
      rooms[path] = fresh
      return fresh
    }
  }

  /// Returns the access directories of all groups with accesses, and that of the user.
  package func all() -> [AccessDirectory] {
    var found: [AccessDirectory] = []
    if let room = try? userRoom() { found.append(room) }
    guard let groups = try? groupsDirectory(),
      let listing = try? Descriptor.open(path: groups.text, .readOnlyDirectory),
      let names = try? listing.names()
    else { return found }
    for name in names.prefix(Self.most) where EscapedName.unescape(name) != Self.userGroup {
      // A group without accesses stays as it is: its container is not opened.
      let room = "\(name)/.wormhole/system/\(AccessDirectory.slotName)"
      guard let group = EscapedName.unescape(name), (try? listing.status(of: room)) != nil,
        let location = try? location(group)
      else { continue }
      if let room = try? self.room(
        location,
        { (place) throws(WormholeError) in
          try self.open(place, create: false)
        })
      {
        found.append(room)
      }
    }
    return found
  }

  /// The limit of groups in a query.
  private static let most = 1000
}
