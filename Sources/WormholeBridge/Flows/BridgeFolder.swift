internal import FoundationEssentials
package import WormholeContainerStorage
package import WormholePropertyLists
internal import WormholeSyscalls

/// A directory below `bridge/`, with files that appear complete and durable.
package struct BridgeFolder: Sendable {
  package let directory: OpenDirectory
  private let container: Container
  private let path: String
  private let remedy: String?

  /// - Parameter remedy: the hint for a damaged file; nil for a file of a flow.
  package init(
    _ path: [String] = [], of container: Container, remedy: String? = nil
  ) throws(WormholeError) {
    (self.container, self.remedy) = (container, remedy)
    let place = ([Container.bridgeName] + path).joined(separator: "/")
    directory = try naming("use", place, container.bridge(path))
    self.path = place
  }

  /// Reads a file; nil if there is none.
  ///
  /// Each file appears by one rename and is synced before, so a damaged one is an error: the bridge
  /// would otherwise begin a flow again, and lose what the file stated.
  package func read(_ name: String) throws(WormholeError) -> PropertyListValue? {
    let bytes: [UInt8]?
    do throws(Errno) {
      bytes = try container.read(name, in: directory)
      // The status of a file that is missing is an error.
      if bytes == nil { _ = try directory.descriptor.status(of: name) }
    } catch {
      if error == .noSuchFile { return nil }
      // It may pass, and says nothing of the file.
      throw WormholeError(error, "read", "\(path)/\(name)")
    }
    guard let bytes, let list = try? BinaryPropertyList.decode(bytes) else { throw damaged(name) }
    return list
  }

  /// Reads a file whose damage has no consequence; nil if there is none, or if it is damaged.
  func readIfSound(_ name: String) throws(WormholeError) -> PropertyListValue? {
    try ignoringDamage { () throws(WormholeError) in try read(name) } ?? nil
  }

  /// When a file was written; nil if there is none.
  func date(of name: String) throws(WormholeError) -> Date? {
    let status = try naming(
      "inspect", name, ignoring(.noSuchFile, directory.descriptor.status(of: name)))
    return (status?.modified).map { Date(timeIntervalSince1970: Double($0) / 1e9) }
  }

  /// Reads a file of any content; nil if there is none.
  func bytes(of name: String) throws(WormholeError) -> [UInt8]? {
    try naming(
      "read", "\(path)/\(name)", ignoring(.noSuchFile, container.read(name, in: directory)) ?? nil)
  }

  func damaged(_ name: String) -> WormholeError {
    WormholeError(
      .damaged, "read", "\(path)/\(name)", because: "the file of the bridge is damaged",
      hint: remedy ?? "begin new flows with 'wormhole bridge rejoin'")
  }

  /// Puts a file in place of any other one, synced; its name is durable, too.
  package func replace(_ name: String, by list: PropertyListValue) throws(WormholeError) {
    try write(name, list)
    try makeDurable()
  }

  /// Puts a synced file in place; its name is durable after ``makeDurable()``.
  ///
  /// - Parameter sync: false for what need not survive a power cut.
  package func write(
    _ name: String, _ list: PropertyListValue, sync: Bool = true
  ) throws(WormholeError) {
    guard let bytes = try? BinaryEncoder().encode(list) else {
      throw WormholeError(.invalidValue, "write", "\(path)/\(name)", because: "it is too large")
    }
    try write(name, bytes, sync: sync)
  }

  package func write(
    _ name: String, _ bytes: [UInt8], sync: Bool = true
  ) throws(WormholeError) {
    try naming(
      "write", "\(path)/\(name)",
      container.replace(name, in: directory.descriptor, by: bytes, sync: sync))
  }

  /// Writes bytes into a file at an offset, which begins with the first ones; false if bytes before
  /// them are missing.
  func write(_ bytes: [UInt8], at offset: Int, of name: String) throws(WormholeError) -> Bool {
    do throws(Errno) {
      let file = try directory.descriptor.open(
        name, offset == 0 ? [.writeOnly, .create] : .writeOnly, mode: 0o600)
      guard try file.status().size >= offset else { return false }
      try file.writeFully(bytes.span.bytes, at: offset)
      return true
    } catch {
      if error == .noSuchFile { return false }
      throw WormholeError(error, "write", "\(path)/\(name)")
    }
  }

  func sync(_ name: String) throws(WormholeError) {
    try naming("sync", "\(path)/\(name)", directory.descriptor.open(name, .writeOnly).sync())
  }

  func contains(_ name: String) throws(WormholeError) -> Bool {
    try naming(
      "find", "\(path)/\(name)",
      ignoring(.noSuchFile, directory.descriptor.status(of: name)) != nil)
  }

  package func makeDurable() throws(WormholeError) {
    try naming("sync", path, container.makeDurable(directory))
  }

  package func remove(_ name: String) throws(WormholeError) {
    _ = try naming(
      "remove", "\(path)/\(name)", ignoring(.noSuchFile, directory.descriptor.unlink(name)))
  }

  /// Runs the body while no other process changes, by this call, the files of the directory.
  ///
  /// The lock is that of the directory. A suspended command may hold it, so no wait is without end.
  ///
  /// - Parameter patience: how long to wait for another process's change.
  func changing<Value>(
    _ operation: String, _ subject: String, within patience: Duration,
    _ body: () throws(WormholeError) -> Value
  ) throws(WormholeError) -> Value {
    let end = Instant.now + patience
    try naming(operation, subject) { () throws(Errno) in
      while try !directory.descriptor.tryLock(.exclusive) {
        guard .now < end else { throw .busy }
        Thread.pause(.milliseconds(1))
      }
    }
    defer { try? directory.descriptor.unlock() }
    return try body()
  }

  // MARK: Files with users' names

  private static let mark = ".plist"

  /// The file for a channel or a queue.
  static func file(of name: String) throws(WormholeError) -> String {
    try Container.escape(name) + mark
  }

  /// The channel or queue of a file; nil for other files.
  static func name(of file: String) -> String? {
    file.ends(with: mark) ? EscapedName.unescape(String(file.dropLast(mark.utf8.count))) : nil
  }

  /// Reads the entries of all channels or queues whose files can be read, and the errors of all
  /// others.
  func readableEntries<Entry>(
    _ entry: (String) throws(WormholeError) -> Entry?
  ) throws(WormholeError) -> (entries: [String: Entry], errors: [String: WormholeError]) {
    var entries: [String: Entry] = [:]
    var errors: [String: WormholeError] = [:]
    for name in try names().compactMap(Self.name(of:)) {
      do throws(WormholeError) {
        entries[name] = try entry(name)
      } catch {
        errors[name] = error
      }
    }
    return (entries, errors)
  }

  package func names() throws(WormholeError) -> [String] {
    try naming("list", path, directory.descriptor.names())
  }
}

/// Runs the body, and returns nil in place of an error about a damaged file.
func ignoringDamage<Value>(
  _ body: () throws(WormholeError) -> Value
) throws(WormholeError) -> Value? {
  do throws(WormholeError) {
    return try body()
  } catch {
    guard error.code == .damaged else { throw error }
    return nil
  }
}
