internal import Synchronization
package import Syscalls

/// The directory of one member, `members/<name>/`, or of one guest, `guests/<random>/`.
///
/// It is made complete, with all its parts, by whoever first needs it: the member that joins, or
/// somebody who sends to a member that never has. Each part is opened when it is first used.
package final class MemberDirectory: Sendable {
  /// The directories in it.
  package enum Part: String, CaseIterable, Sendable {
    /// Messages that wait.
    case inbox
    /// Messages that are being handled.
    case claimed
    /// Messages that were given up, and why.
    case dead
    /// How messages ended that this member has sent.
    case receipts
    /// The latest state that each peer has sent.
    case context
    /// What is for the process that lives now.
    case live
    /// Files that belong to messages.
    case files

    // Looked up at each step of a message: not by searching the names.
    fileprivate var place: Int {
      switch self {
      case .inbox: 0
      case .claimed: 1
      case .dead: 2
      case .receipts: 3
      case .context: 4
      case .live: 5
      case .files: 6
      }
    }
  }

  package let container: Container
  package let folder: Container.Folder
  /// The name as people gave it.
  package let name: String
  package let escaped: String
  package let home: OpenDirectory
  private let parent: OpenDirectory
  private let parts = Monitor([OpenDirectory?](repeating: nil, count: Part.allCases.count))

  /// The file that a member holds a lock on for as long as it lives.
  package static let presenceName = "presence"
  package static let profileName = "profile.plist"
  /// How far what is in the member's hands has come.
  package static let progressName = "progress"

  /// From the container's directory.
  package var path: String { "\(folder.rawValue)/\(escaped)" }

  fileprivate init(
    _ container: Container, _ folder: Container.Folder, _ name: String, _ escaped: String,
    home: consuming Descriptor, in parent: OpenDirectory
  ) {
    self.container = container
    self.folder = folder
    self.name = name
    self.escaped = escaped
    self.home = OpenDirectory(home)
    self.parent = parent
  }

  /// Whether the directory has been removed: then nothing more can be made in it.
  package var isStale: Bool { home.isStale }

  /// When a name in it has come or gone last, as the file system's clock has it.
  package var lastChange: Int64? { (try? home.descriptor.status())?.modified }

  /// The same for one of the directories in it; nil if that is missing.
  package func lastChange(of part: Part) throws(Errno) -> Int64? {
    try existing(part)?.descriptor.status().modified
  }

  /// Whether it is still the directory of that name.
  var isNamed: Bool {
    get throws(Errno) {
      do throws(Errno) {
        let named = try parent.descriptor.status(of: escaped)
        return named.isSameFile(as: try home.descriptor.status())
      } catch {
        if error == .noSuchFile { return false }
        throw error
      }
    }
  }

  /// One of the directories in it; made again if it was removed by hand.
  package func part(_ part: Part) throws(Errno) -> OpenDirectory {
    let place = part.place
    if let open = parts.withLock({ $0[place] }) { return open }
    let open = OpenDirectory(try Self.ensure(part, in: home.descriptor, container))
    return parts.withLock { parts in
      if let other = parts[place] { return other }
      parts[place] = open
      return open
    }
  }

  /// The same, if it is there.
  func existing(_ part: Part) throws(Errno) -> OpenDirectory? {
    let place = part.place
    if let open = parts.withLock({ $0[place] }), !open.isStale || !forgetIfStale(part) {
      return open
    }
    do throws(Errno) {
      let open = OpenDirectory(
        try container.options.sharing.openExisting(part.rawValue, in: home.descriptor))
      parts.withLock { $0[place] = $0[place] ?? open }
      return open
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }

  /// Forgets an open part that was removed by hand; whether it was.
  func forgetIfStale(_ part: Part) -> Bool {
    parts.withLock { parts in
      guard let open = parts[part.place], open.isStale else { return false }
      parts[part.place] = nil
      return true
    }
  }

  /// The directory that has the part's name now, in the place of one that is open and had it
  /// before; nil if none has.
  func named(_ part: Part) throws(Errno) -> OpenDirectory? {
    let named = try home.directory(part.rawValue, container.options.sharing)
    return parts.withLock { parts in
      if let open = parts[part.place], let named, open.isSame(as: named) { return open }
      parts[part.place] = named
      return named
    }
  }

  /// Uses the directory that has the part's name now; if it cannot be looked at, when it can.
  func renew(_ part: Part) {
    do throws(Errno) {
      _ = try named(part)
    } catch {
      parts.withLock { $0[part.place] = nil }
    }
  }

  /// Forgets the open parts whose names others have by now; false if another has its own, or if
  /// that cannot be told.
  package func lookAgain() -> Bool {
    guard (try? isNamed) == true else { return false }
    for part in Part.allCases where parts.withLock({ $0[part.place] }) != nil {
      // One that cannot be looked at is used as before.
      _ = try? named(part)
    }
    return true
  }

  /// Why this user may not write to a part, and what can be done; nil if it seems to be allowed.
  func denial(of part: Part) -> String? { container.denial(of: "\(path)/\(part.rawValue)") }

  /// Makes a part's own name durable, and those above it, once.
  func syncNames(of part: OpenDirectory) throws(Errno) {
    guard !part.isNameDurable.load(ordering: .acquiring) else { return }
    try home.sync.sync(home.descriptor)
    try parent.sync.sync(parent.descriptor)
    part.isNameDurable.store(true, ordering: .releasing)
  }

  private static func ensure(
    _ part: Part, in home: borrowing Descriptor, _ container: Container
  ) throws(Errno) -> Descriptor {
    try container.staging.ensureDirectory(part.rawValue, in: home)
  }

  /// Makes the directory with all that belongs in it; it appears complete.
  fileprivate static func make(
    _ escaped: String, in parent: OpenDirectory, _ container: Container
  ) throws(Errno) {
    let sharing = container.options.sharing
    do throws(Errno) {
      try container.staging.makeDirectory(escaped, in: parent.descriptor) {
        directory throws(Errno) in
        for part in Part.allCases { _ = try ensure(part, in: directory, container) }
        let presence = try directory.open(
          presenceName, [.readWrite, .create, .exclusive], mode: 0o600)
        if sharing == .group { try presence.setMode(sharing.fileMode) }
      }
    } catch {
      guard error == .fileExists || error == .directoryNotEmpty else { throw error }
    }
  }
}

extension Container {
  /// The directory of a member or a guest; nil if there is none.
  package func existingMember(
    _ name: String, in folder: Folder = .members
  ) throws(WormholeError) -> MemberDirectory? {
    let escaped = try Self.escape(name)
    do throws(Errno) {
      return try openMember(name, escaped, folder)
    } catch {
      if error == .noSuchFile { return nil }
      throw WormholeError(error, "open member", name, in: self, "\(folder.rawValue)/\(escaped)")
    }
  }

  /// The directory of a member or a guest; made if there is none.
  package func member(
    _ name: String, in folder: Folder = .members
  ) throws(WormholeError) -> MemberDirectory {
    let escaped = try Self.escape(name)
    do throws(Errno) {
      do throws(Errno) {
        return try openMember(name, escaped, folder)
      } catch {
        guard error == .noSuchFile else { throw error }
      }
      return try makeMember(name, escaped, folder)
    } catch {
      throw WormholeError(error, "open member", name, in: self, "\(folder.rawValue)/\(escaped)")
    }
  }

  func makeMember(
    _ name: String, _ escaped: String, _ folder: Folder
  ) throws(Errno) -> MemberDirectory {
    var tries = 0
    while true {
      do throws(Errno) {
        try MemberDirectory.make(escaped, in: self.folder(folder), self)
        return try openMember(name, escaped, folder)
      } catch {
        // Somebody may be removing it, each time that it was made; or all of them.
        tries += 1
        guard error == .noSuchFile, tries < 100 else { throw error }
        _ = forgetIfStale(folder)
      }
    }
  }

  func openMember(
    _ name: String, _ escaped: String, _ folder: Folder
  ) throws(Errno) -> MemberDirectory {
    do throws(Errno) {
      let parent = try existingFolder(folder)
      return MemberDirectory(
        self, folder, name, escaped,
        home: try options.sharing.openExisting(escaped, in: parent.descriptor), in: parent)
    } catch {
      // Another may have come in the place of a folder that was removed.
      guard error == .noSuchFile, forgetIfStale(folder) else { throw error }
      return try openMember(name, escaped, folder)
    }
  }
}
