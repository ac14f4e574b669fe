internal import FoundationEssentials
package import WormholeContainerStorage
package import WormholePropertyLists
internal import WormholeSyscalls

/// A directory below `bridge/`, with files that appear complete and durable.
package struct BridgeFolder: Sendable {
  package let directory: OpenDirectory
  private let container: Container
  private let path: String

  package init(_ path: [String] = [], of container: Container) throws(WormholeError) {
    self.container = container
    self.path = ([Container.bridgeName] + path).joined(separator: "/")
    do throws(Errno) {
      directory = try container.bridge(path)
    } catch {
      throw WormholeError(error, "use", self.path)
    }
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

  /// When a file was written; nil if there is none.
  func date(of name: String) throws(WormholeError) -> Date? {
    do throws(Errno) {
      let modified = try directory.descriptor.status(of: name).modified
      return Date(timeIntervalSince1970: Double(modified) / 1e9)
    } catch {
      guard error != .noSuchFile else { return nil }
      throw WormholeError(error, "inspect", name)
    }
  }

  /// Reads a file of any content; nil if there is none.
  func bytes(of name: String) throws(WormholeError) -> [UInt8]? {
    do throws(Errno) {
      return try container.read(name, in: directory)
    } catch {
      if error == .noSuchFile { return nil }
      throw WormholeError(error, "read", "\(path)/\(name)")
    }
  }

  func damaged(_ name: String) -> WormholeError {
    WormholeError(
      .damaged, "read", "\(path)/\(name)", because: "the file of the bridge is damaged",
      hint: "begin new flows with 'wormhole bridge rejoin'")
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
    do throws(Errno) {
      try container.replace(name, in: directory, by: bytes, sync: sync)
    } catch {
      throw WormholeError(error, "write", "\(path)/\(name)")
    }
  }

  /// Writes bytes into a file at an offset, which begins with the first ones; false if bytes before
  /// them are missing.
  func write(_ bytes: [UInt8], at offset: Int, of name: String) throws(WormholeError) -> Bool {
    do throws(Errno) {
      let file = try directory.descriptor.open(
        name, offset == 0 ? [.writeOnly, .create] : .writeOnly, mode: 0o600)
      guard try file.status().size >= offset else { return false }
      let failure = bytes.withUnsafeBytes { bytes in
        Errno.of { () throws(Errno) in try file.writeFully(bytes, at: offset) }
      }
      if let failure { throw failure }
      return true
    } catch {
      if error == .noSuchFile { return false }
      throw WormholeError(error, "write", "\(path)/\(name)")
    }
  }

  func sync(_ name: String) throws(WormholeError) {
    do throws(Errno) {
      try directory.descriptor.open(name, .writeOnly).sync()
    } catch {
      throw WormholeError(error, "sync", "\(path)/\(name)")
    }
  }

  func contains(_ name: String) throws(WormholeError) -> Bool {
    do throws(Errno) {
      _ = try directory.descriptor.status(of: name)
      return true
    } catch {
      if error == .noSuchFile { return false }
      throw WormholeError(error, "find", "\(path)/\(name)")
    }
  }

  package func makeDurable() throws(WormholeError) {
    do throws(Errno) {
      try container.makeDurable(directory)
    } catch {
      throw WormholeError(error, "sync", path)
    }
  }

  package func remove(_ name: String) throws(WormholeError) {
    do throws(Errno) {
      try directory.descriptor.unlink(name)
    } catch {
      if error != .noSuchFile { throw WormholeError(error, "remove", "\(path)/\(name)") }
    }
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

  /// Reads the entries of all channels or queues that have a file.
  func entries<Entry>(
    _ entry: (String) throws(WormholeError) -> Entry?
  ) throws(WormholeError) -> [String: Entry] {
    var entries: [String: Entry] = [:]
    for name in try names().compactMap(Self.name(of:)) { entries[name] = try entry(name) }
    return entries
  }

  package func names() throws(WormholeError) -> [String] {
    do throws(Errno) {
      var names: [String] = []
      try directory.descriptor.forEachName { (name) throws(Errno) in
        names.append(String(cString: name))
        return true
      }
      return names
    } catch {
      throw WormholeError(error, "list", path)
    }
  }
}
