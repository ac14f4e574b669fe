import WormholeContainerStorage
import WormholeSyscalls

/// The facts about a user's sources that decide what a package around them contains.
///
/// Only lines are compared: a module that is imported under a condition counts, too.
struct SourceScan {
  /// The directory, absolute and without symbolic links.
  let path: String
  /// The imported modules.
  private(set) var modules: Set<String> = []
  /// The expression of the shared object that is the delegate of its session, if there is one.
  var delegate: String? {
    delegates.lazy.compactMap { type in
      properties.first { $0.type == type }.map { "\(type).\($0.name)" }
    }.first
  }

  private var delegates: [String] = []
  private var properties: [(name: String, type: String)] = []
  private var files = 0

  /// The limits keep a wrong directory, such as a home directory, from being read for minutes.
  private static let (mostFiles, mostBytes, mostLevels) = (5_000, 1 << 20, 20)

  init(_ path: String) throws {
    do throws(Errno) {
      let directory = try Descriptor.open(following: path, .readOnlyDirectory)
      self.path = try directory.straightPath()
      try read(directory, level: 0)
    } catch {
      throw WormholeError(error, "read sources", path)
    }
    guard files > 0 else {
      throw WormholeError(
        .notFound, "use sources", path, because: "the directory contains no Swift file")
    }
    guard files <= Self.mostFiles else {
      throw WormholeError(
        .tooLarge, "use sources", path,
        because: "the directory contains more than \(Self.mostFiles) Swift files",
        hint: "name the directory with the code that both sides share")
    }
  }

  private mutating func read(_ directory: borrowing Descriptor, level: Int) throws(Errno) {
    for name in try directory.names().sorted() where !name.begins(with: ".") {
      guard files <= Self.mostFiles else { return }
      let kind = try directory.status(of: name).kind
      if kind == .directory, level < Self.mostLevels {
        try read(directory.open(name, .readOnlyDirectory), level: level + 1)
      } else if kind == .regular, name.ends(with: ".swift") {
        files += 1
        let file = try directory.open(name, [.readOnly])
        scan(String(decoding: try file.bytes(most: Self.mostBytes), as: UTF8.self))
      }
    }
  }

  static func modules(importedBy text: String) -> Set<String> {
    Set(lines(of: text).compactMap(module(importedBy:)))
  }

  private mutating func scan(_ text: String) {
    for words in Self.lines(of: text) {
      if let module = Self.module(importedBy: words) { modules.insert(module) }
      if let type = Self.delegate(declaredBy: words) { delegates.append(type) }
      if let property = Self.sharedObject(declaredBy: words) { properties.append(property) }
    }
  }

  /// The words of each line; a dot, a colon and other marks separate words and are left out.
  private static func lines(of text: String) -> [[String]] {
    text.utf8.split { $0 == UInt8(ascii: "\n") }.map { line in
      line.split { byte in
        !((byte | 0x20) &- UInt8(ascii: "a") < 26 || byte &- UInt8(ascii: "0") < 10
          || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "@") || byte >= 0x80)
      }.map { String(decoding: $0, as: UTF8.self) }
    }
  }

  private static let kinds: Set = [
    "struct", "class", "enum", "protocol", "typealias", "func", "let", "var",
  ]
  private static let access: Set = ["public", "package", "internal", "private", "fileprivate"]

  private static func module(importedBy words: [String]) -> String? {
    let words = words.drop { $0.begins(with: "@") || access.contains($0) }
    guard words.first == "import" else { return nil }
    return words.dropFirst().first { !kinds.contains($0) }
  }

  private static func delegate(declaredBy words: [String]) -> String? {
    guard words.contains("WCSessionDelegate"),
      let kind = words.firstIndex(where: { ["class", "extension", "actor"].contains($0) }),
      kind + 1 < words.count, words[kind + 1] != "WCSessionDelegate"
    else { return nil }
    return words[kind + 1]
  }

  /// As in `static let shared = Link()`.
  private static func sharedObject(declaredBy words: [String]) -> (name: String, type: String)? {
    guard words.contains("static"), !words.contains("private"), !words.contains("fileprivate"),
      let binding = words.firstIndex(where: { $0 == "let" || $0 == "var" }),
      binding + 2 < words.count
    else { return nil }
    return (words[binding + 1], words[binding + 2])
  }
}

extension Descriptor {
  /// The path of this open directory, as the kernel knows it.
  borrowing func straightPath() throws(Errno) -> String {
    let link = "/proc/\(Processes.current)/fd/\(rawValue)"
    return String(decoding: try Descriptor.readSymbolicLink(path: link), as: UTF8.self)
  }

  /// Returns the first bytes of the file.
  fileprivate borrowing func bytes(most: Int) throws(Errno) -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: most, alignment: 1)
    defer { buffer.deallocate() }
    let count = try readFully(into: buffer)
    return Array(buffer[..<count])
  }
}
