internal import WormholePropertyLists
internal import WormholeSyscalls

/// The launch command of a member.
///
/// A user with write permission for the file can make other users run any program. The file is
/// therefore trusted only if no user but the reader can have written it: a plain file, owned and
/// writable by the reader alone.
///
/// In a container of one user the file is `start.plist` in the member's directory, whose mode and
/// owner are checked too. All users of a group can write to the directories of a group's container.
/// Checking the owner of the file would not be enough there: another user can rename a file of the
/// owner's, for example a file in transfer, to the name `start.plist`. Each user's launch commands
/// for a group's container are therefore stored in the account's own state directory. Their folder
/// is named for the container's device, inode and id, so that another container with the same id
/// does not use them.
package struct MemberStart: Equatable, Sendable {
  /// An absolute path.
  package let program: String
  package let arguments: [String]
  /// Variables that replace or extend the environment of the launching process.
  package let environment: [String: String]
  /// The working directory; nil for the root.
  package let directory: String?

  /// The largest file that is read.
  static let largestFile = 64 << 10

  /// All strings for the kernel.
  package var words: [String] {
    [program, directory ?? ""] + arguments + environment.flatMap { [$0, $1] }
  }

  package init(
    program: String, arguments: [String], environment: [String: String], directory: String?
  ) {
    self.program = program
    self.arguments = arguments
    self.environment = environment
    self.directory = directory
  }

  /// Nil if the bytes do not have this form, or belong to another member.
  init?(_ bytes: [UInt8], of name: String) {
    guard let list = try? BinaryPropertyList.decode(bytes), list["name"]?.stringValue == name,
      let program = list["program"]?.stringValue, program.begins(with: "/"),
      let arguments = list["arguments"]?.arrayValue,
      let environment = list["environment"]?.dictionaryValue
    else { return nil }
    self.program = program
    self.arguments = arguments.compactMap(\.stringValue)
    self.environment = environment.compactMapValues(\.stringValue)
    directory = list["directory"]?.stringValue
    guard self.arguments.count == arguments.count, self.environment.count == environment.count,
      words.allSatisfy(Self.canBePassed)
    else { return nil }
  }

  func encoded(for name: String) throws -> [UInt8] {
    var entries: [String: PropertyListValue] = [
      "name": .string(name), "program": .string(program),
      "arguments": .array(arguments.map { .string($0) }),
      "environment": .dictionary(environment.mapValues { .string($0) }),
    ]
    entries["directory"] = directory.map { .string($0) }
    return try entries.encoded(atMost: Self.largestFile)
  }

  /// Whether the kernel takes the whole text: a zero byte would end the text.
  package static func canBePassed(_ text: String) -> Bool { !text.utf8.contains(0) }
}

/// The location of a member's launch command.
private struct StartPlace {
  let directory: OpenDirectory
  let file: String
  /// Where the file is written before it gets its name.
  let staging: Staging
}

extension MemberDirectory {
  package static let startName = "start.plist"

  /// Nil if there is no location, and none is to be made.
  private func startPlace(making: Bool) throws(WormholeError) -> StartPlace? {
    guard container.options.sharing == .group else {
      return StartPlace(directory: home, file: Self.startName, staging: container.staging)
    }
    guard let directory = try container.startsFolder(making: making) else { return nil }
    return try naming("open the launch commands of", container.path) { () throws(Errno) in
      let environment = container.options.environment
      return StartPlace(
        directory: directory, file: "\(escaped).plist",
        staging: Staging(try directory.descriptor.duplicate(), .owner, environment))
    }
  }

  /// Returns the launch command; nil if none is registered, and an error if the file is not
  /// trusted.
  package func readStart(_ operation: String) throws(WormholeError) -> MemberStart? {
    guard let place = try startPlace(making: false) else { return nil }
    let reader = FileReader(
      largest: MemberStart.largestFile, owner: Processes.effectiveUser)
    let found: FoundFile
    do throws(ReadRefusal) {
      found = try reader.read(place.file, in: place.directory.descriptor)
    } catch {
      throw error.error(operation, name, Self.startName)
    }
    let bytes: [UInt8]
    let status: FileStatus
    switch found {
    case .missing: return nil
    case .sound(let content, let of): (bytes, status) = (content, of)
    case .damaged(let reason, let of):
      try checkWriters(of, operation)
      throw unusable(operation, "is damaged: \(reason)")
    }
    try checkWriters(status, operation)
    guard let start = MemberStart(bytes, of: name) else {
      throw unusable(operation, "contains no launch command of '\(name)'")
    }
    return start
  }

  private func unusable(_ operation: String, _ reason: String) -> WormholeError {
    WormholeError(
      .damaged, operation, name, because: "its \(Self.startName) \(reason)",
      hint: "register the launch command again")
  }

  /// Refuses a file if another user may have written to it.
  private func checkWriters(_ file: FileStatus, _ operation: String) throws(WormholeError) {
    func refused(_ reason: String, _ hint: String) -> WormholeError {
      WormholeError(.refused, operation, name, because: reason, hint: hint)
    }
    let others: FileMode = 0o022
    if file.mode & others != 0 {
      throw refused(
        "unauthorized users may write to its \(Self.startName) "
          + "(mode \(String(file.mode, radix: 8)))",
        "check the content of the file, and register the launch command again")
    }
    // For a group's container, opening the state directory has checked the path.
    guard container.options.sharing == .owner else { return }
    let directory = try naming(operation, name, home.descriptor.status())
    guard directory.owner == Processes.effectiveUser, directory.mode & others == 0 else {
      throw refused(
        "unauthorized users may write to its directory",
        "check the content of the directory, and run 'chmod go-w' on the directory")
    }
  }

  /// Registers a launch command and replaces an earlier one; when this returns, the file is on
  /// disk.
  package func write(_ start: MemberStart) throws(WormholeError) {
    let operation = "register the launch command of"
    let bytes = try encoding(operation, name, hint: "store large arguments in a file") {
      try start.encoded(for: name)
    }
    guard let place = try startPlace(making: true) else { return }
    try naming(operation, name) { () throws(Errno) in
      try check(place)
      // Nobody else looks for the files of killed processes beside the launch commands of a group.
      if place.staging !== container.staging { _ = try? place.staging.sweep() }
      try place.staging.withFile(bytes, sync: true, isPrivate: true) { staged, _ throws(Errno) in
        try place.staging.directory().descriptor.replace(
          staged, in: place.directory.descriptor, place.file)
      }
      try place.directory.sync.sync(place.directory.descriptor)
      // The member's directory may have been made for this file.
      if place.directory === home { try parent.sync.sync(parent.descriptor) }
    }
  }

  /// Refuses to replace an entry that is neither a plain file nor a link.
  private func check(_ place: StartPlace) throws(Errno) {
    let status = try ignoring(.noSuchFile, place.directory.descriptor.status(of: place.file))
    guard [nil, .regular, .symbolicLink].contains(status?.kind) else { throw .noDevice }
  }

  /// Removes the launch command; false if none was registered.
  ///
  /// When this returns, the removal is on disk. If it throws, the file may be gone already.
  package func removeLaunch() throws(WormholeError) -> Bool {
    let operation = "remove the launch command of"
    guard let place = try startPlace(making: false) else { return false }
    return try naming(operation, name) { () throws(Errno) in
      let removed: Void? = try ignoring(
        .noSuchFile, place.directory.descriptor.unlink(place.file))
      // Also if the file is missing: an earlier call may have removed it, and failed here. Some
      // file systems sync no directory.
      try ignoring(.invalidArgument, place.directory.sync.sync(place.directory.descriptor))
      return removed != nil
    }
  }

  /// Whether a `start.plist` is in the directory of a member of a group's container, where no
  /// process trusts it.
  var hasForeignStart: Bool {
    container.options.sharing == .group
      && (try? home.descriptor.status(of: Self.startName)) != nil
  }
}

extension Container {
  /// The folder of this account's launch commands for a group's container.
  fileprivate func startsFolder(making: Bool) throws(WormholeError) -> OpenDirectory? {
    let key = "\(identity.device)-\(identity.inode)-\(try Self.escape(id))"
    return try AccountState(options.environment).open(
      ["wormhole", "starts", key], making: making, syncing: making)
  }
}

extension Container {
  /// The absolute path of the container: a process launched in another directory needs an absolute
  /// path.
  package var absolutePath: String {
    let own = "/proc/\(Processes.current)/fd"
    guard let numbers = try? Descriptor.open(path: own, .readOnlyDirectory),
      let bytes = try? numbers.readSymbolicLink("\(root.descriptor.rawValue)"),
      let path = String(validating: bytes, as: UTF8.self), path.begins(with: "/")
    else { return path }
    return path
  }
}
