import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The files outside of any container that the workers use in turn.
///
/// Each file contains a number and the access that wrote it. The kind of a file determines its use,
/// and therefore the promise:
///
/// | Kind | Written | Suspended accesses | Promised |
/// |---|---|---|---|
/// | patient | in any way | are waited for | no two at once, nothing lost |
/// | fenced | replaced only | may be taken over | nothing lost |
/// | loose | in any way | may be taken over | an access without takeover meets no other |
struct SharedFiles: Sendable {
  enum Kind: String, CaseIterable { case patient, fenced, loose }

  /// The use of one file, or of one folder with all its files, by one access.
  struct Use: Hashable, Sendable {
    enum Way: String, Sendable { case read, write, replace }

    let way: Way
    /// `patient/0`, or `patient` for all files of the folder.
    let name: String

    var kind: Kind? { Kind(rawValue: name.split(separator: "/").first.map(String.init) ?? "") }

    /// Returns whether the use conflicts with another use that has a different purpose.
    func conflicts(with other: Use) -> Bool {
      guard way != .read || other.way != .read else { return false }
      return name == other.name || name.hasPrefix(other.name + "/")
        || other.name.hasPrefix(name + "/")
    }

    /// The file that is read and written: for a folder, the first file.
    var file: String { name.contains("/") ? name : name + "/0" }

    var text: String { "\(way.rawValue):\(name)" }

    init(_ way: Way, _ name: String) { (self.way, self.name) = (way, name) }

    init?(_ text: some StringProtocol) {
      let parts = text.split(separator: ":", maxSplits: 1)
      guard parts.count == 2, let way = Way(rawValue: String(parts[0])) else { return nil }
      self.init(way, String(parts[1]))
    }
  }

  /// The content of a file: how often it was written, and by which access last.
  struct Content: Hashable, Sendable {
    let count: Int
    let token: String

    static let empty = Content(count: 0, token: "-")

    var text: String { "\(count)/\(token)" }

    init(count: Int, token: String) { (self.count, self.token) = (count, token) }

    init?(_ text: some StringProtocol) {
      let parts = text.split(separator: "/", omittingEmptySubsequences: false)
      guard parts.count == 2, let count = Int(parts[0]) else { return nil }
      self.init(count: count, token: String(parts[1]))
    }
  }

  /// The parent directory of all shared files.
  let base: String

  static let files = ["patient/0", "patient/1", "fenced/0", "fenced/1", "fenced/group", "loose/0"]

  /// The directory of the groups, with the containers that order the accesses: separate from the
  /// user's own groups.
  var groups: String { base + "/groups" }
  /// One file belongs to a group, so a different container orders its accesses.
  static let group = "group.stress"
  static let groupFile = "fenced/group"

  func path(_ name: String) -> String {
    name == Self.groupFile ? "\(groups)/\(Self.group)/file" : "\(base)/files/\(name)"
  }

  /// The containers with accesses: they order the accesses to the files.
  var containers: [String] {
    ["wormhole.user", Self.group].map { "\(groups)/\($0)/.wormhole" }
  }

  /// The folders in which new files are made.
  var folders: [String] { Kind.allCases.map { path($0.rawValue) } + ["\(groups)/\(Self.group)"] }

  func make() throws {
    for folder in [base, base + "/files", base + "/made", groups] + folders {
      try Descriptor.makeDirectory(path: folder, mode: 0o700)
    }
    for name in Self.files { try write(.empty, path(name)) }
  }

  /// Makes a coordinator, like the coordinator of a separate program.
  func coordinator() -> Coordinator {
    var options = ContainerOptions()
    // The lease is the same as in the workers' container.
    options.lease = .milliseconds(50)
    return Coordinator(Arbiters(options, root: groups))
  }

  func intent(_ use: Use) -> Coordinator.Intent {
    let path = path(use.name)
    return switch use.way {
    case .read: .reading(path)
    case .write: .writing(path)
    case .replace: .replacing(path)
    }
  }

  // MARK: Content

  func read(_ path: String) throws -> Content {
    let file = try Descriptor.open(path: path, [.readOnly])
    var bytes = [UInt8](repeating: 0, count: 200)
    let count = try bytes.withUnsafeMutableBytes { try file.readFully(into: $0) }
    guard bytes[..<count].last == UInt8(ascii: "\n"),
      let content = Content(String(decoding: bytes[..<(count - 1)], as: UTF8.self))
    else { throw Torn(path: path) }
    return content
  }

  struct Torn: Error, CustomStringConvertible {
    let path: String
    var description: String { "'\(path)' has a content that no access has written" }
  }

  private func write(_ content: Content, _ path: String) throws {
    let file = try Descriptor.open(path: path, [.writeOnly, .create, .truncate], mode: 0o600)
    try file.writeFully(Array((content.text + "\n").utf8))
  }

  /// Writes a file in one step: a process that dies here leaves either the old file or the new
  /// file.
  ///
  /// - Parameter path: the location for the new file, if the access replaces the file.
  func write(_ content: Content, _ use: Use, at path: String) throws {
    guard use.way == .write else { return try write(content, path) }
    let made = "\(base)/made/\(content.token)"
    try write(content, made)
    let folder = try Descriptor.open(path: base, [.readOnly, .directory])
    try folder.rename("made/\(content.token)", to: folder, "files/\(use.file)")
  }
}
