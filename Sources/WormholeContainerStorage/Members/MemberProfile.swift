package import FoundationEssentials
package import WormholePropertyLists
package import WormholeSyscalls

/// The identity of a member, in `profile.plist`: written by the process that joins, readable by
/// every process.
///
/// The profile proves no presence, which the kernel decides: a profile outlives its process.
package struct MemberProfile: FileRecord, Equatable, Sendable {
  package private(set) var name = ""
  package private(set) var incarnation = Incarnation.unread
  package private(set) var process: Int32 = 0
  /// The inode of the process's pid namespace.
  package private(set) var namespace: UInt64 = 0
  /// In ticks since boot.
  package private(set) var started: UInt64 = 0
  package private(set) var program = ""
  /// The time when the process joined.
  package private(set) var since = Date.distantPast
  /// Information that the member publishes about itself.
  package var info: [String: String] = [:]
  /// Whether a carrier has written the profile, for a process of another machine.
  ///
  /// The profile stays when the name is free again, although no process of this machine has joined.
  package var isCarried = false

  /// The limit for ``info``: the bytes of its keys and values.
  package static let largestInfo = 4096
  /// The largest file that is read as a profile.
  static let largestFile = 64 << 10

  package init() {}

  package mutating func visit(_ fields: inout some FieldVisitor) throws {
    // The name is the directory's, whatever name the file contains.
    try? fields.field("name", &name)
    var digits = incarnation.rawValue
    try fields.field("incarnation", &digits)
    try fields.check(
      "incarnation", Randomness.isName(digits), "an incarnation has 16 hexadecimal digits")
    incarnation = Incarnation(rawValue: digits) ?? .unread
    try fields.field("process", &process)
    try fields.check("process", process > 0, "\(process) is not a process")
    try fields.field("namespace", &namespace)
    try fields.field("started", &started)
    try fields.field("program", &program)
    program = program.harmless
    try fields.field("since", &since)
    try fields.field("info", &info)
    // A carrier's key spoils no profile if it has another type.
    try? fields.field("carried", &isCarried, unless: false)
  }

  /// Makes the profile of the joining process.
  package init(name: String, info: [String: String], _ environment: Environment) {
    let identity = ProcessIdentity.current
    self.name = name
    incarnation = Incarnation(environment)
    process = identity.process
    namespace = identity.namespace
    started = identity.started
    program = identity.program
    since = Date(
      timeIntervalSince1970: Double(environment.sinceEpoch() / 1_000_000) / 1000)
    self.info = info
  }

  /// Makes the profile of a process of another machine.
  ///
  /// The profile states the process IDs of this process: those of another machine say nothing here.
  package init(
    of name: String, _ incarnation: Incarnation, program: String, since: Date,
    info: [String: String]
  ) {
    let identity = ProcessIdentity.current
    self.name = name
    self.incarnation = incarnation
    process = identity.process
    namespace = identity.namespace
    started = identity.started
    self.program = program
    self.since = since
    self.info = info
    isCarried = true
  }

  /// Reads the file; nil if the bytes do not have this form.
  ///
  /// Keys of later versions are ignored.
  init?(_ bytes: [UInt8], name: String) {
    guard let profile = try? MemberProfile(bytes) else { return nil }
    self = profile
    self.name = name
  }

  /// The file, with its keys in alphabetical order.
  package func encoded() throws -> [UInt8] {
    try entries().encoded(atMost: Self.largestFile)
  }

  /// The process that has joined, and its visible state.
  package var holder: LockHolder {
    LockHolder(process: process, namespace: namespace, started: started, program: program)
  }

  /// Whether ``info`` is within the limit.
  package static func fits(_ info: [String: String]) -> Bool {
    info.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count } <= largestInfo
  }
}

/// The result of reading a profile.
package enum FoundProfile: Sendable {
  /// No process has ever joined.
  case missing
  case sound(MemberProfile)
  /// A process has joined, and its profile cannot be read.
  case damaged(String)
  /// A foreign file under the profile's name.
  case foreign(String)

  package var profile: MemberProfile? {
    if case .sound(let profile) = self { profile } else { nil }
  }
}

extension MemberDirectory {
  /// Reads the profile, without waiting.
  package func readProfile() throws(Errno) -> FoundProfile {
    var reader = container.reader
    reader.largest = MemberProfile.largestFile
    do throws(ReadRefusal) {
      switch try reader.read(Self.profileName, in: home.descriptor) {
      case .missing: return .missing
      case .damaged(let reason, _): return .damaged(reason)
      case .sound(let bytes, _):
        return MemberProfile(bytes, name: name).map { .sound($0) }
          ?? .damaged("the format is unknown")
      }
    } catch {
      switch error {
      case .system(let error): throw error
      case .tooLarge: return .damaged("the file exceeds the maximum size of a profile")
      case .kind, .owner, .mode: return .foreign(error.error("read", path, Self.profileName).reason)
      }
    }
  }

  /// Gives the profile its name, and replaces any file of that name.
  ///
  /// Only the holder of the presence may call this, so no two processes write at once.
  package func write(_ profile: MemberProfile) throws(WormholeError) {
    let bytes = try encoding("write profile of", name) { try profile.encoded() }
    try naming("write profile of", name, at: self) { () throws(Errno) in
      try container.staging.withFile(bytes) { staged, _ throws(Errno) in try exchangeIn(staged) }
    }
  }

  private func exchangeIn(_ staged: String) throws(Errno) {
    let staging = try container.staging.directory()
    do throws(Errno) {
      return try staging.descriptor.rename(
        staged, to: home.descriptor, Self.profileName, .exchanging)
    } catch {
      guard error == .noSuchFile || error.meansUnsupportedRename else { throw error }
    }
    try staging.descriptor.rename(staged, to: home.descriptor, Self.profileName)
  }
}
