internal import Syscalls

/// A path as the kernel compares it: byte for byte, component for component.
package struct AccessPath: Sendable {
  package let text: String

  /// - Parameter text: absolute, and without links, empty components or a slash at its end.
  package init(_ text: String) { self.text = text }

  /// Whether it stands for the kernel's bytes: those that are no text have come to be other ones.
  package var isText: Bool {
    !text.utf8.contains(0xEF) || !text.unicodeScalars.contains("\u{FFFD}")
  }

  /// Whether the other one is this one, or lies below it; `/a` is not above `/ab`.
  package func isAtOrAbove(_ other: AccessPath) -> Bool {
    let (own, its) = (text.utf8, other.text.utf8)
    guard own.count > 1 else { return true }
    guard its.starts(with: own) else { return false }
    return its.count == own.count || its.dropFirst(own.count).first == UInt8(ascii: "/")
  }

  /// Where this is once what it is, or what it lies in, was moved; nil if that is neither.
  package func moved(from: AccessPath, to: AccessPath) -> AccessPath? {
    guard from.text != "/", from.isAtOrAbove(self) else { return nil }
    return AccessPath(
      to.text + String(decoding: text.utf8.dropFirst(from.text.utf8.count), as: UTF8.self))
  }

  /// The way from here to what lies below; nil if it does not.
  package func way(to other: AccessPath) -> String? {
    guard self != other, isAtOrAbove(other) else { return nil }
    let length = text == "/" ? 1 : text.utf8.count + 1
    return String(decoding: other.text.utf8.dropFirst(length), as: UTF8.self)
  }

  /// Nil unless it is absolute, and no component of it leads elsewhere.
  package init?(plain text: String) {
    guard let path = AccessPath(squeezing: text), path.text.utf8.count == text.utf8.count else {
      return nil
    }
    self.init(text)
  }

  /// Without what leads nowhere, a slash after another and a dot alone; nil unless it is absolute,
  /// and no component of it leads up.
  ///
  /// Each access does this twice: in parts of strings it would take as long as three calls of the
  /// system.
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
  /// Where a path of the user's leads: its last component in a directory without links, and, if
  /// that is a link itself, what it leads to.
  ///
  /// What does not exist yet counts by the nearest directory above it that does.
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
      // One that leads nowhere counts for itself.
      guard isLink, let end = try followed(path) else { return [own] }
      return [own, end]
    } catch {
      throw WormholeError(proc: error, "coordinate", path)
    }
  }

  /// Where a path leads, by whatever links, or would if there were anything; nil if nobody can say.
  ///
  /// That the system cannot say so now does not mean that: others would not be kept away.
  static func end(of path: String) throws(Errno) -> AccessPath? {
    if let own = straight(path) { return own }
    return try followed(path)
  }

  private static func followed(_ path: String) throws(Errno) -> AccessPath? {
    let file: Descriptor
    do throws(Errno) {
      file = try Descriptor.open(following: path, [.path])
    } catch {
      guard error.leadsNowhere else { throw error }
      return nil
    }
    return AccessPath(try real(file))
  }

  /// The path itself, if no component of it is a link, and all of them are there, or all but the
  /// last; nil also if that cannot be told so.
  ///
  /// So it is with nearly all, and to ask where a path leads takes three times as long.
  private static func straight(_ path: String) -> AccessPath? {
    guard let own = AccessPath(squeezing: path) else { return nil }
    var failure = Errno.of { () throws(Errno) in _ = try Descriptor.open(straight: own.text) }
    if failure == .noSuchFile {
      let above = UserPath(own.text).directory
      failure = Errno.of { () throws(Errno) in _ = try Descriptor.open(straight: above) }
    }
    return failure == nil ? own : nil
  }

  /// The path in a directory without links, and whether it is one itself.
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
    do throws(Errno) {
      return try parent.status(of: name).kind == .symbolicLink
    } catch {
      guard error.leadsNowhere else { throw error }
      return false
    }
  }

  /// The path of what is open, as the kernel has it.
  private static func real(_ file: borrowing Descriptor) throws(Errno) -> String {
    let bytes = try Descriptor.readSymbolicLink(path: "/proc/self/fd/\(file.rawValue)")
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension Errno {
  /// Whether there is nothing for this user at the end of a path, now or later.
  var leadsNowhere: Bool {
    [.noSuchFile, .notADirectory, .tooManyLinks, .accessDenied, .nameTooLong].contains(self)
  }
}
