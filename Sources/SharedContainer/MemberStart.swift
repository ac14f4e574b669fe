internal import PropertyLists
internal import Syscalls

/// How a member is started, as `start.plist` in its directory has it.
///
/// Whoever may write this file decides what others run, so it is believed only where nobody but the
/// user who asks can have written it: a plain file of that user's, which others may not write to.
/// In a container of one user the member's directory is looked at too. A group's directories can be
/// written by all of the group; there somebody else can take the file away or put another one in
/// its place, but not one of this user's, because who owns a file cannot be made up. The file has
/// the mode 0600 from its first moment on, also before it is visible, and holds the member's name,
/// so that one that was moved to another member's directory starts nothing.
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
      let program = list["program"]?.stringValue, program.hasPrefix("/"),
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

extension MemberDirectory {
  package static let startName = "start.plist"

  /// How it is started; nil if nobody has said so, and an error where it is not to be believed.
  package func readStart(_ operation: String) throws(WormholeError) -> MemberStart? {
    let reading = FileReading(
      largest: MemberStart.largestFile, owner: Processes.effectiveUser,
      mutants: container.options.environment.mutants)
    let found: FoundFile
    do throws(FileReading.Refusal) {
      found = try reading.read(Self.startName, in: home.descriptor)
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
    let failure = bytes.withUnsafeBytes { bytes in
      Errno.of { () throws(Errno) in
        try checkPlace()
        let staging = container.staging
        try staging.withFile(bytes, sync: true, isPrivate: true) { staged, _ throws(Errno) in
          try staging.directory.replace(staged, in: home.descriptor, Self.startName)
        }
        try home.sync.sync(home.descriptor)
      }
    }
    if let failure { throw WormholeError(failure, operation, name) }
  }

  /// Something that is no plain file is not replaced.
  private func checkPlace() throws(Errno) {
    do throws(Errno) {
      let status = try home.descriptor.status(of: Self.startName)
      guard status.kind == .regular || status.kind == .symbolicLink else { throw .noDevice }
    } catch {
      guard error == .noSuchFile else { throw error }
    }
  }

  /// Forgets how it is started; false if nobody had said so.
  package func removeStart() throws(WormholeError) -> Bool {
    do throws(Errno) {
      try home.descriptor.unlink(Self.startName)
      return true
    } catch {
      guard error == .noSuchFile else {
        throw WormholeError(error, "forget the start of", name)
      }
      return false
    }
  }
}

extension Container {
  /// Where it lies, from the root: whoever is started somewhere else has to find it.
  package var absolutePath: String {
    let own = "/proc/\(Processes.current)/fd"
    guard let numbers = try? Descriptor.open(path: own, [.readOnly, .directory]),
      let bytes = try? numbers.readSymbolicLink("\(root.rawValue)"),
      let path = String(validating: bytes, as: UTF8.self), path.hasPrefix("/")
    else { return path }
    return path
  }
}
