internal import Syscalls

/// A path as the kernel compares it: byte for byte, component for component.
package struct AccessPath: Sendable {
  package let text: String

  /// - Parameter text: absolute, and without links, empty components or a slash at its end.
  package init(_ text: String) { self.text = text }

  /// Whether it stands for the kernel's bytes: those that are no text have come to be other ones.
  package var isText: Bool { !text.utf8.contains(0xEF) || !text.contains("\u{FFFD}") }

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
    let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count > 1, parts[0].isEmpty,
      parts.dropFirst().allSatisfy({ UserPath.isName(String(decoding: $0, as: UTF8.self)) })
    else { return nil }
    self.init(text)
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
      let place = UserPath(ContainerOpening.withoutSlashes(path))
      guard UserPath.isName(place.name) else {
        return [AccessPath(try real(Descriptor.open(following: path, [.path])))]
      }
      let (text, isLink) = try unlinked(place)
      let own = AccessPath(text)
      // One that leads nowhere counts for itself.
      guard isLink, let end = try end(of: path) else { return [own] }
      return [own, end]
    } catch {
      throw WormholeError(proc: error, "coordinate", path)
    }
  }

  /// Where a path leads, by whatever links; nil if there is nothing.
  ///
  /// That the system cannot say so now does not mean that: others would not be kept away.
  static func end(of path: String) throws(Errno) -> AccessPath? {
    do throws(Errno) {
      return AccessPath(try real(Descriptor.open(following: path, [.path])))
    } catch {
      guard error.leadsNowhere else { throw error }
      return nil
    }
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
      let parent = ContainerOpening.withoutSlashes(String(place.path.dropLast(place.name.count)))
      guard error == .noSuchFile, !parent.isEmpty, parent != "/" else { throw error }
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
