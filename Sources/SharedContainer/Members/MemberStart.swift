internal import PropertyLists
internal import Syscalls

/// How a member is started.
///
/// Whoever may write this file decides what others run, so it is believed only where nobody but the
/// user who asks can have written it: a plain file of that user's, which others may not write to.
///
/// In a container of one user it is `start.plist` in the member's directory, which is looked at
/// too. The directories of a group's container can be written to by all of the group. There it
/// would not be enough to look whose a file is: another user can take one that is being written or
/// sent, and give it the name. So each user's starts in such a container lie in the account's own
/// state directory. Their folder there is named for the container's device, inode and id, so that
/// they are not those of a container that calls itself by the same id.
package struct MemberStart: Equatable, Sendable {
  /// An absolute path.
  package let program: String
  package let arguments: [String]
  /// What is set beside, or in place of, what whoever starts it has.
  package let environment: [String: String]
  /// Where it begins; nil: at the root.
  package let directory: String?

  /// The largest file that is read.
  static let largestFile = 64 << 10

  /// All that the kernel is given.
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

  /// Nil if it is of no such form, or another member's.
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
    var limits = PropertyListLimits.default
    limits.bytes = Self.largestFile
    return try BinaryEncoder(limits: limits).encode(PropertyListValue.dictionary(entries))
  }

  /// Whether the kernel takes it as a whole: a zero would end it.
  package static func canBePassed(_ text: String) -> Bool { !text.utf8.contains(0) }
}

/// Where the start of a member lies.
private struct StartPlace {
  let directory: OpenDirectory
  let file: String
  /// Where it is written before it gets its name.
  let staging: Staging
}

extension MemberDirectory {
  package static let startName = "start.plist"

  /// Nil if it is nowhere, and nothing is to be made.
  private func startPlace(making: Bool) throws(WormholeError) -> StartPlace? {
    guard container.options.sharing == .group else {
      return StartPlace(directory: home, file: Self.startName, staging: container.staging)
    }
    guard let directory = try container.startsFolder(making: making) else { return nil }
    do throws(Errno) {
      let environment = container.options.environment
      return StartPlace(
        directory: directory, file: "\(escaped).plist",
        staging: Staging(try directory.descriptor.duplicate(), .owner, environment))
    } catch {
      throw WormholeError(error, "open the starts of", container.path)
    }
  }

  /// How it is started; nil if nobody has said so, and an error where it is not to be believed.
  package func readStart(_ operation: String) throws(WormholeError) -> MemberStart? {
    guard let place = try startPlace(making: false) else { return nil }
    let reading = FileReading(
      largest: MemberStart.largestFile, owner: Processes.effectiveUser)
    let found: FoundFile
    do throws(FileReading.Refusal) {
      found = try reading.read(place.file, in: place.directory.descriptor)
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
      throw unusable(operation, "says nothing of how '\(name)' is started")
    }
    return start
  }

  private func unusable(_ operation: String, _ reason: String) -> WormholeError {
    WormholeError(
      .damaged, operation, name, because: "its \(Self.startName) \(reason)",
      hint: "register it anew")
  }

  /// Nobody else may have decided what is run.
  private func checkWriters(_ file: FileStatus, _ operation: String) throws(WormholeError) {
    func refused(_ reason: String, _ hint: String) -> WormholeError {
      WormholeError(.refused, operation, name, because: reason, hint: hint)
    }
    let others: FileMode = 0o022
    if file.mode & others != 0 {
      throw refused(
        "others may write to its \(Self.startName) (mode \(String(file.mode, radix: 8)))",
        "look what it says now, and register it anew")
    }
    // The way to the other place was looked at when that was opened.
    guard container.options.sharing == .owner else { return }
    let directory: FileStatus
    do throws(Errno) {
      directory = try home.descriptor.status()
    } catch {
      throw WormholeError(error, operation, name)
    }
    guard directory.owner == Processes.effectiveUser, directory.mode & others == 0 else {
      throw refused("others may write to its directory", "look what is in it, and 'chmod go-w' it")
    }
  }

  /// Says how it is started, in the place of what was said before; it is on disk then.
  package func write(_ start: MemberStart) throws(WormholeError) {
    let operation = "register the start of"
    let bytes: [UInt8]
    do {
      bytes = try start.encoded(for: name)
    } catch {
      throw WormholeError(
        .tooLarge, operation, name, because: "\(error)", hint: "put what is large into a file")
    }
    guard let place = try startPlace(making: true) else { return }
    let failure = bytes.withUnsafeBytes { bytes in
      Errno.of { () throws(Errno) in
        try check(place)
        try place.staging.withFile(bytes, sync: true, isPrivate: true) { staged, _ throws(Errno) in
          try place.staging.directory().descriptor.replace(
            staged, in: place.directory.descriptor, place.file)
        }
        try place.directory.sync.sync(place.directory.descriptor)
      }
    }
    if let failure { throw WormholeError(failure, operation, name) }
  }

  /// Something that is no plain file is not replaced.
  private func check(_ place: StartPlace) throws(Errno) {
    do throws(Errno) {
      let status = try place.directory.descriptor.status(of: place.file)
      guard status.kind == .regular || status.kind == .symbolicLink else { throw .noDevice }
    } catch {
      guard error == .noSuchFile else { throw error }
    }
  }

  /// Forgets how it is started; false if nobody had said so.
  package func removeStart() throws(WormholeError) -> Bool {
    guard let place = try startPlace(making: false) else { return false }
    do throws(Errno) {
      try place.directory.descriptor.unlink(place.file)
      return true
    } catch {
      guard error == .noSuchFile else {
        throw WormholeError(error, "forget the start of", name)
      }
      return false
    }
  }

  /// Whether a `start.plist` lies in the directory of a member of a group's container, where
  /// nothing believes it.
  var hasForeignStart: Bool {
    container.options.sharing == .group
      && (try? home.descriptor.status(of: Self.startName)) != nil
  }
}

extension Container {
  /// Where this account's starts of a group's container lie.
  fileprivate func startsFolder(making: Bool) throws(WormholeError) -> OpenDirectory? {
    let key = "\(identity.device)-\(identity.inode)-\(try Self.escape(id))"
    return try AccountState(options.environment).open(
      ["wormhole", "starts", key], making: making)
  }
}

extension Container {
  /// Where it lies, from the root: whoever is started somewhere else has to find it.
  package var absolutePath: String {
    let own = "/proc/\(Processes.current)/fd"
    guard let numbers = try? Descriptor.open(path: own, [.readOnly, .directory]),
      let bytes = try? numbers.readSymbolicLink("\(root.rawValue)"),
      let path = String(validating: bytes, as: UTF8.self), path.begins(with: "/")
    else { return path }
    return path
  }
}
