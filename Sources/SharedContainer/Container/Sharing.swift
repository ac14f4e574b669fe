package import Syscalls

/// Who may use a container.
@nonexhaustive
public enum Sharing: Hashable, Sendable {
  /// The user whose it is: files 0600, directories 0700.
  case owner
  /// All members of the directory's group: files 0660, directories 2770.
  case group

  /// As it is noted in `container.plist`.
  var name: String { self == .owner ? "owner" : "group" }

  init?(name: String) {
    switch name {
    case "owner": self = .owner
    case "group": self = .group
    default: return nil
    }
  }

  package var fileMode: FileMode { self == .owner ? 0o600 : 0o660 }
  package var directoryMode: FileMode { self == .owner ? 0o700 : 0o2770 }
  /// Who may not write to what lies in the container.
  var foreignWriters: FileMode { self == .owner ? 0o022 : 0o002 }
}

/// Directories that nobody ever meets without being allowed to enter.
///
/// Where a container is a group's, a directory that was made under its name and given its mode
/// afterwards would shut the others out for as long as its maker is stopped in between, and for
/// ever if it dies there. So each is made elsewhere, and moved to its name with its mode.
extension Sharing {
  /// Opens a directory; makes it if it is missing.
  ///
  /// One that another user has made and nobody else can enter is removed if nothing is in it:
  /// whoever made it, with other means, has died or is held up before it got its mode.
  ///
  /// - Parameters:
  ///   - make: makes it; that another was faster is no error.
  ///   - check: looks at what was opened; for the owner alone nothing is to be looked at.
  func openDirectory(
    _ name: String, in parent: borrowing Descriptor, make: () throws(Errno) -> Void,
    check: (borrowing Descriptor, FileStatus) throws(Errno) -> Void
  ) throws(Errno) -> Descriptor {
    var tries = 0
    while true {
      do throws(Errno) {
        let directory = try parent.open(name, [.readOnly, .directory])
        if self == .group {
          let status = try directory.status()
          // Whoever may write there could put anything in anything's place.
          guard status.mode & foreignWriters == 0 else { throw .notPermitted }
          try check(directory, status)
        }
        return directory
      } catch {
        tries += 1
        guard tries < 1000 else { throw error }
        switch error {
        case .noSuchFile:
          try ifNotThere(make)
        case .accessDenied where self == .group:
          do throws(Errno) {
            try parent.removeDirectory(name)
          } catch {
            guard error == .noSuchFile else { throw .accessDenied }
          }
        default: throw error
        }
      }
    }
  }

  /// Opens a directory of the container that is there.
  ///
  /// In a group's it is refused if others than the group may write to it.
  func openExisting(
    _ name: String, in parent: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    let directory = try parent.open(name, [.readOnly, .directory])
    if self == .group {
      guard try directory.status().mode & foreignWriters == 0 else { throw .notPermitted }
    }
    return directory
  }

  private func ifNotThere(_ make: () throws(Errno) -> Void) throws(Errno) {
    do throws(Errno) {
      try make()
    } catch {
      guard error == .fileExists || error == .directoryNotEmpty else { throw error }
    }
  }

  /// Gives one's own directory what its mode lacks.
  func mend(_ directory: borrowing Descriptor, _ status: FileStatus) throws(Errno) {
    guard self == .group, status.owner == Processes.effectiveUser,
      status.mode & directoryMode != directoryMode
    else { return }
    try directory.setMode(status.mode | directoryMode)
  }

  /// Makes a directory beside the one that it becomes, where there is no `staging/` yet.
  ///
  /// - Parameter other: what it is called until then if somebody else is making it.
  func makeBeside(_ name: String, in parent: borrowing Descriptor, _ other: String) throws(Errno) {
    guard self == .group else { return try parent.makeDirectory(name, mode: 0o700) }
    var tries = 0
    while true {
      do throws(Errno) {
        return try makeHidden(name, in: parent, other)
      } catch {
        // Somebody has taken it for what a dead process left.
        tries += 1
        guard error == .noSuchFile, tries < 10 else { throw error }
      }
    }
  }

  private func makeHidden(
    _ name: String, in parent: borrowing Descriptor, _ other: String
  ) throws(Errno) {
    var hidden = Self.hiddenName(of: name)
    do throws(Errno) {
      // What an earlier attempt has left that was killed, if nothing is in it.
      let left = try? parent.open(hidden, [.readOnly, .directory])
      if let left, (try? left.tryLock(.exclusive)) == true { try? parent.removeDirectory(hidden) }
      try parent.makeDirectory(hidden, mode: 0o700)
    } catch {
      // Somebody is at it, or it is somebody else's.
      guard error == .fileExists else { throw error }
      hidden = other
      try parent.makeDirectory(hidden, mode: 0o700)
    }
    defer { try? parent.removeDirectory(hidden) }
    let made = try parent.open(hidden, [.readOnly, .directory])
    guard try made.tryLock(.exclusive) else { throw .noSuchFile }
    defer { try? made.unlock() }
    try made.setMode(directoryMode)
    try parent.publishAsItIs(hidden, to: parent, name)
  }

  /// Opens one's own directory, and makes it as ``makeBeside(_:in:_:)`` does if it is missing.
  func ensureBeside(
    _ name: String, in parent: borrowing Descriptor, _ hidden: String
  ) throws(Errno) -> Descriptor {
    try openDirectory(name, in: parent) { () throws(Errno) in
      try makeBeside(name, in: parent, hidden)
    } check: { directory, status throws(Errno) in
      try mend(directory, status)
    }
  }

  /// What a directory is called that is made beside where it is to be.
  static func hiddenName(_ environment: Environment) -> String {
    hiddenPrefix + environment.randomName()
  }
  static let hiddenPrefix = ".wormhole-"

  /// The same for something of a name, always: FNV-1a, in 64 bits.
  static func hiddenName(of name: String) -> String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    let digits = String(hash, radix: 16)
    return hiddenPrefix + String(repeating: "0", count: 16 - digits.count) + digits
  }
}

extension Container {
  /// Why this user may not write to a directory of the container, and what can be done; nil if it
  /// seems to be allowed.
  func denial(of path: String) -> String? {
    options.sharing.denial(of: path, in: root)
  }

  /// The same for the first of `staging/` and the directories on the way to a path.
  func firstDenial(on path: String) -> String? {
    let parts = path.parts(between: "/")
    let way = parts.indices.map { parts[...$0].joined(separator: "/") }
    return (["staging", "staging/\(Staging.ownName)"] + way).lazy.compactMap(denial).first
  }
}

extension Sharing {
  func denial(of path: String, in root: borrowing Descriptor) -> String? {
    guard let status = try? root.status(of: path) else { return nil }
    guard status.mode & foreignWriters == 0 else {
      return "'\(path)' has the mode \(String(status.mode, radix: 8)), so that others may write to "
        + "it: 'chmod o-w' it, and look what lies there"
    }
    let user = Processes.effectiveUser
    let permissions = status.mode >> (status.owner == user ? 6 : self == .group ? 3 : 0)
    guard permissions & 0o3 != 0o3 else { return nil }
    return "'\(path)' belongs to user \(status.owner) and has the mode "
      + "\(String(status.mode, radix: 8)), and this is user \(user): give it back with 'chown' or "
      + "'chmod'"
  }
}
