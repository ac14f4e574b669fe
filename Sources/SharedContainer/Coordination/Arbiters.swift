internal import Synchronization
package import Syscalls

/// Which container orders the accesses to a path: for what lies in the directory of a group that
/// group's, and for everything else one for each user.
///
/// So it follows from the user, the path and where the groups lie, and from nothing else that a
/// program may have been started with: any two programs of a user meet.
package final class Arbiters: Sendable {
  /// Those that the programs of this process share.
  package static let shared = OneForEachProcess { Arbiters() }

  /// The group of all files that belong to no other.
  static let userGroup = "wormhole.user"

  private let options: ContainerOptions
  private let root: String?
  private let rooms = Monitor<[String: AccessRoom]>([:])

  package convenience init() { self.init(ContainerOptions(), root: nil) }

  /// - Parameter root: where the groups lie, in place of what the environment says.
  package init(_ options: ContainerOptions, root: String?) {
    self.options = options
    self.root = root
  }

  private func location(_ group: String) throws(WormholeError) -> ContainerLocation {
    try ContainerLocation(group: group, root: root)
  }

  /// The room for the files of the user that are no group's.
  private func userRoom(at location: ContainerLocation) throws(WormholeError) -> AccessRoom {
    try room(location) { (location) throws(WormholeError) in
      try location.prepare(.owner)
      return try Container.open(location.container, options: self.options)
    }
  }

  /// The room for a path that has no links in it.
  package func room(for path: AccessPath) throws(WormholeError) -> AccessRoom {
    let user = try location(Self.userGroup)
    guard let group = try group(of: path, user), group != Self.userGroup else {
      return try userRoom(at: user)
    }
    return try room(location(group)) { (location) throws(WormholeError) in
      try self.open(location)
    }
  }

  /// Nil if no file lies in it.
  ///
  /// Here and below, what the system cannot say now is an error: in another container than theirs
  /// nobody would meet the others.
  private func groupsDirectory(_ user: ContainerLocation) throws(WormholeError) -> AccessPath? {
    let path = user.groups
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

  private func group(
    of path: AccessPath, _ user: ContainerLocation
  ) throws(WormholeError) -> String? {
    guard let groups = try groupsDirectory(user), groups.isAtOrAbove(path) else { return nil }
    let rest = path.text.utf8.dropFirst(groups.text.utf8.count).drop { $0 == UInt8(ascii: "/") }
    let name = String(decoding: rest.prefix { $0 != UInt8(ascii: "/") }, as: UTF8.self)
    do throws(Errno) {
      let status = try Descriptor.status(ofPath: groups.text + "/" + name)
      // What lies there and is no directory is no group's.
      return status.kind == .directory ? EscapedName.unescape(name) : nil
    } catch {
      guard error.leadsNowhere else { throw WormholeError(error, "coordinate", path.text) }
      return nil
    }
  }

  /// The container of a group says itself whether it is for several users.
  private func open(_ location: ContainerLocation) throws(WormholeError) -> Container {
    do throws(WormholeError) {
      return try Container.open(location.container, options: options)
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
  ) throws(WormholeError) -> AccessRoom {
    let path = location.container
    if let room = rooms.withLock({ $0[path] }), room.container.isInPlace { return room }
    let fresh = try AccessRoom(open(location))
    return rooms.withLock { rooms in
      if let other = rooms[path], other.container.identity == fresh.container.identity {
        return other
      }
      rooms[path] = fresh
      return fresh
    }
  }

  /// The rooms of all groups that have accesses, and that of the user.
  package func all() -> [AccessRoom] {
    var found: [AccessRoom] = []
    guard let user = try? location(Self.userGroup) else { return [] }
    if let room = try? userRoom(at: user) { found.append(room) }
    guard let groups = try? groupsDirectory(user),
      let listing = try? Descriptor.open(path: groups.text, [.readOnly, .directory]),
      let names = try? listing.names()
    else { return found }
    for name in names.prefix(Self.most) where EscapedName.unescape(name) != Self.userGroup {
      // A group without accesses is left as it is.
      let room = "\(name)/.wormhole/system/\(AccessRoom.slotName)"
      guard let group = EscapedName.unescape(name), (try? listing.status(of: room)) != nil,
        let location = try? location(group)
      else { continue }
      if let room = try? self.room(
        location,
        { (place) throws(WormholeError) in
          try self.open(place)
        })
      {
        found.append(room)
      }
    }
    return found
  }

  /// How many groups are looked at for one question.
  private static let most = 1000
}
