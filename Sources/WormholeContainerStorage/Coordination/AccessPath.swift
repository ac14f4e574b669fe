internal import WormholeSyscalls

/// A path as the kernel compares it: byte for byte, component for component.
package struct AccessPath: Sendable {
  package let text: String

  /// - Parameter text: absolute, and without links, empty components or a slash at its end.
  package init(_ text: String) { self.text = text }

  /// Whether the text stands for the kernel's bytes: bytes that are not UTF-8 were replaced.
  package var isText: Bool {
    !text.utf8.contains(0xEF) || !text.unicodeScalars.contains("\u{FFFD}")
  }

  /// Whether a path equals this path or is below; `/a` is not above `/ab`.
  package func isAtOrAbove(_ other: AccessPath) -> Bool {
    let (own, its) = (text.utf8, other.text.utf8)
    guard own.count > 1 else { return true }
    guard its.starts(with: own) else { return false }
    return its.count == own.count || its.dropFirst(own.count).first == UInt8(ascii: "/")
  }

  /// Returns this path after a move of the file, or of a directory above it; nil if the move does
  /// not affect this path.
  package func moved(from: AccessPath, to: AccessPath) -> AccessPath? {
    guard from.text != "/", from.isAtOrAbove(self) else { return nil }
    return AccessPath(
      to.text + String(decoding: text.utf8.dropFirst(from.text.utf8.count), as: UTF8.self))
  }

  /// Returns the relative path from here to a path below; nil if the other path is not below.
  package func way(to other: AccessPath) -> String? {
    guard self != other, isAtOrAbove(other) else { return nil }
    let length = text == "/" ? 1 : text.utf8.count + 1
    return String(decoding: other.text.utf8.dropFirst(length), as: UTF8.self)
  }

  /// Nil unless the path is absolute, and no component is empty, `.` or `..`.
  package init?(plain text: String) {
    guard let path = AccessPath(squeezing: text), path.text.utf8.count == text.utf8.count else {
      return nil
    }
    self.init(text)
  }

  /// Removes repeated slashes and components `.`; nil unless the path is absolute, and no component
  /// is `..`.
  ///
  /// Each access does this twice: with parts of strings it would take as long as three system
  /// calls.
  init?(squeezing text: String) {
    let (slash, dot) = (UInt8(ascii: "/"), UInt8(ascii: "."))
    var text = text
    let bytes = text.withUTF8 { all -> [UInt8]? in
      guard all.first == slash else { return nil }
      var bytes: [UInt8] = []
      bytes.reserveCapacity(all.count)
      var place = 0
      while place < all.count {
        let end = all[(place + 1)...].firstIndex(of: slash) ?? all.count
        let part = all[(place + 1)..<end]
        if UserPath.isName(part) {
          bytes += all[place..<end]
        } else if !part.isEmpty, part.count > 1 || part.first != dot {
          return nil
        }
        place = end
      }
      return bytes
    }
    guard let bytes, !bytes.isEmpty else { return nil }
    self.init(String(decoding: bytes, as: UTF8.self))
  }

  package func isRelated(to other: AccessPath) -> Bool {
    isAtOrAbove(other) || other.isAtOrAbove(self)
  }
}

// Swift takes two spellings of one letter for the same, and the kernel does not.
extension AccessPath: Hashable {
  package static func == (left: AccessPath, right: AccessPath) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
  }
}

extension AccessPath {
  /// Returns the real location of a user's path: its last component in a directory without links,
  /// and, if the last component is a link, also the target of the link.
  ///
  /// A path that does not exist yet counts by its nearest existing directory.
  package static func resolve(_ path: String) throws(WormholeError) -> [AccessPath] {
    do throws(Errno) {
      guard !path.isEmpty, !path.utf8.contains(0) else { throw .noSuchFile }
      let path = UserPath.withoutSlashes(path)
      if let own = straight(path) { return [own] }
      let place = UserPath(path)
      guard UserPath.isName(place.name) else {
        return [AccessPath(try real(Descriptor.open(following: path, [.path])))]
      }
      let (text, isLink) = try unlinked(place)
      let own = AccessPath(text)
      // A link that leads nowhere counts for itself.
      guard isLink, let end = try followed(path) else { return [own] }
      return [own, end]
    } catch {
      throw WormholeError(proc: error, "coordinate", path)
    }
  }

  /// Returns the end of a path behind all links, whether or not a file exists there; nil if the end
  /// cannot be determined.
  ///
  /// A temporary failure of the system is thrown and is not nil: with a wrong answer, conflicting
  /// accesses would not exclude each other.
  static func end(of path: String) throws(Errno) -> AccessPath? {
    if let own = straight(path) { return own }
    return try followed(path)
  }

  private static func followed(_ path: String) throws(Errno) -> AccessPath? {
    guard
      let file = try ignoring(
        Errno.nowhere, { () throws(Errno) in try Descriptor.open(following: path, [.path]) })
    else { return nil }
    return AccessPath(try real(file))
  }

  /// Returns the path itself if no component is a link, and all components exist, or all but the
  /// last; nil also if the check fails.
  ///
  /// Nearly all paths are like this, and resolving a path takes three times as long.
  private static func straight(_ path: String) -> AccessPath? {
    guard let own = AccessPath(squeezing: path) else { return nil }
    var failure = Errno.of { () throws(Errno) in _ = try Descriptor.open(straight: own.text) }
    if failure == .noSuchFile {
      let above = UserPath(own.text).directory
      failure = Errno.of { () throws(Errno) in _ = try Descriptor.open(straight: above) }
    }
    return failure == nil ? own : nil
  }

  /// Returns the path in a directory without links, and whether the path itself is a link.
  private static func unlinked(_ place: UserPath) throws(Errno) -> (path: String, isLink: Bool) {
    guard UserPath.isName(place.name) else { throw .invalidArgument }
    let above: String
    var isLink = false
    do throws(Errno) {
      let parent = try place.openParent([.path, .directory])
      isLink = try Self.isLink(place.name, in: parent)
      above = try real(parent)
    } catch {
      let parent = place.directory
      guard error == .noSuchFile, parent != ".", parent != "/" else { throw error }
      above = try unlinked(UserPath(parent)).path
    }
    return (above == "/" ? above + place.name : above + "/" + place.name, isLink)
  }

  private static func isLink(
    _ name: String, in parent: borrowing Descriptor
  ) throws(Errno) -> Bool {
    let status = try ignoring(Errno.nowhere) { () throws(Errno) in try parent.status(of: name) }
    return status?.kind == .symbolicLink
  }

  /// Returns the kernel's path of an open file.
  private static func real(_ file: borrowing Descriptor) throws(Errno) -> String {
    let bytes = try Descriptor.readSymbolicLink(path: "/proc/self/fd/\(file.rawValue)")
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension Errno {
  /// The errors by which this user finds no file at the end of a path, now or later.
  static let nowhere: Set<Errno> = [
    .noSuchFile, .notADirectory, .tooManyLinks, .accessDenied, .nameTooLong,
  ]
}
