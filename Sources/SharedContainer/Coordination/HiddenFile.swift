internal import Syscalls

/// Where the new content of a file is made that an access replaces: `new`, in a hidden directory
/// beside the file.
///
/// It is made before the access runs, and whoever goes past the access removes it first: out of a
/// directory that was removed nothing can be renamed, so that one that was overtaken changes
/// nothing.
struct HiddenFile: ~Copyable, Sendable {
  private let parent: Descriptor
  private let target: String
  private let name: String
  private let directory: Descriptor
  /// Where the caller makes the new file.
  let path: String

  static let newName = "new"
  /// How deep what is in a replaced directory may be.
  private static let depth = 64
  /// Begins the names of directories that are being removed.
  private static let doomedPrefix = ".removed-"

  /// The path of the directory, before it is there.
  static func path(beside target: AccessPath, _ name: AccessName, _ index: Int) -> String {
    UserPath(target.text).parent + prefix(of: name) + ".\(index)"
  }

  private static func prefix(of name: AccessName) -> String { ".wormhole-" + name.text }

  init(beside target: AccessPath, at path: String) throws(Errno) {
    let place = UserPath(path)
    let parent = try place.openParent()
    try parent.makeDirectory(place.name, mode: 0o700)
    directory = try parent.open(place.name, [.readOnly, .directory])
    self.parent = parent
    self.target = UserPath(target.text).name
    name = place.name
    self.path = path + "/" + Self.newName
  }

  enum Outcome { case exchanged, superseded, nothingMade }

  /// Puts the new file in the place of the old one.
  func exchange() throws(Errno) -> Outcome {
    do throws(Errno) {
      try put()
      return .exchanged
    } catch {
      guard error == .noSuchFile else { throw error }
      return try directory.status().links == 0 ? .superseded : .nothingMade
    }
  }

  private func put() throws(Errno) {
    do throws(Errno) {
      try directory.rename(Self.newName, to: parent, target, .exchanging)
    } catch {
      if error == .noSuchFile { return try putFirst() }
      guard error.meansUnsupportedRename else { throw error }
      try directory.rename(Self.newName, to: parent, target)
    }
  }

  /// There is no old one, or no new one.
  private func putFirst() throws(Errno) {
    do throws(Errno) {
      try directory.rename(Self.newName, to: parent, target, .notReplacing)
    } catch {
      // Somebody who does not coordinate has made one meanwhile.
      guard error == .fileExists || error.meansUnsupportedRename else { throw error }
      try directory.rename(Self.newName, to: parent, target)
    }
  }

  /// Removes the directory, with what was in the file's place before.
  func remove() throws(Errno) {
    try Self.remove(name, in: parent)
  }

  /// Removes the hidden directory of an access, whoever made it; nothing if it has gone.
  ///
  /// Nothing is touched whose name does not hold that of the access.
  static func remove(_ path: String, of name: AccessName) throws(Errno) {
    let place = UserPath(path)
    guard UserPath.isName(place.name), place.name.begins(with: prefix(of: name) + ".") else {
      return
    }
    do throws(Errno) {
      try remove(place.name, in: place.openParent())
    } catch {
      guard error == .noSuchFile else { throw error }
    }
  }

  private static func remove(_ name: String, in parent: borrowing Descriptor) throws(Errno) {
    var tries = 0
    while true {
      do throws(Errno) {
        return try removeOnce(name, in: parent)
      } catch {
        // Its owner may be making something in it just now.
        tries += 1
        guard error == .directoryNotEmpty, tries < 1000 else {
          if error == .noSuchFile { return }
          throw error
        }
      }
    }
  }

  /// Removes it with what is in it; somebody else may do the same.
  private static func removeOnce(
    _ name: String, in parent: borrowing Descriptor
  ) throws(Errno) {
    let directory = try parent.open(name, [.readOnly, .directory])
    try directory.forEachName { child throws(Errno) in
      do throws(Errno) {
        try removeChild(child, in: directory)
      } catch {
        guard error == .noSuchFile else { throw error }
      }
      return true
    }
    try parent.removeDirectory(name)
  }

  /// Removes one thing of what is in it.
  ///
  /// To remove a directory takes many steps, and its owner may put it into place between two of
  /// them. So it is first given a name that its owner does not know, in one step.
  private static func removeChild(
    _ name: UnsafePointer<CChar>, in directory: borrowing Descriptor
  ) throws(Errno) {
    do throws(Errno) {
      return try directory.unlink(name)
    } catch {
      guard error == .isADirectory || error == .notPermitted else { throw error }
    }
    if String(validatingCString: name)?.begins(with: doomedPrefix) == true {
      return try removeTree(name, in: directory, depth: depth)
    }
    let doomed = doomedPrefix + Environment().randomName()
    try directory.rename(name, to: directory, doomed)
    try removeTree(doomed, in: directory, depth: depth)
  }
}
