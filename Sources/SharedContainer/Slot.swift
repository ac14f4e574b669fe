internal import Syscalls

/// One value that processes share, with its lock: a directory that holds `value.plist`,
/// `kept.plist` and `lock/`.
///
/// Reading takes no lock. Every change goes through ``change(_:durability:policy:patience:_:)``:
/// read under the lock, compute, commit.
package final class Slot: Sendable {
  package let container: Container
  package let folder: Container.Folder
  /// The name as people gave it.
  package let name: String
  let escaped: String
  /// Where its value lies; nil: in its own directory, as `value.plist`.
  let home: Home?

  /// A place for a value outside the slot's directory, on the same file system.
  struct Home: Sendable {
    let directory: OpenDirectory
    let file: String
  }

  private let opened = Monitor<SlotDirectory?>(nil)
  let turns = Turns()
  let lockState = LockState()

  init(
    container: Container, folder: Container.Folder, name: String, _ escaped: String,
    home: Home? = nil
  ) {
    self.home = home
    self.container = container
    self.folder = folder
    self.name = name
    self.escaped = escaped
  }

  /// What the slot holds.
  package enum Content: Sendable {
    case nothing
    /// The bytes of a sound property list. Recovered: the latest value is damaged, and this is the
    /// one before it that was kept.
    case value([UInt8], recovered: Bool)
    /// What is there is damaged, and nothing sound is kept.
    case damaged(String)
  }

  /// The files of a slot, by names that the kernel takes as they are.
  enum File {
    case value, kept

    var name: UnsafePointer<CChar> {
      switch self {
      case .value: ("value.plist" as StaticString).cString
      case .kept: ("kept.plist" as StaticString).cString
      }
    }
  }

  static let valueName = "value.plist"
  static let keptName = "kept.plist"

  /// What errors call it.
  var title: String { (folder == .channels ? "channel" : folder.rawValue) }

  /// Reads what is there now.
  package func read() throws(WormholeError) -> Content {
    // Put together only for an error.
    var operation: String { "read \(title)" }
    while true {
      guard let directory = try openDirectory(operation) else { return .nothing }
      let found = try find(in: directory, operation)
      if case .missing = found, directory.isStale {
        forgetDirectory()
        continue
      }
      return try content(of: found, in: directory, operation)
    }
  }

  /// The directory, without making one.
  func openDirectory(_ operation: @autoclosure () -> String) throws(WormholeError) -> SlotDirectory?
  {
    do throws(Errno) {
      return try openDirectory(making: false)
    } catch {
      if error == .noSuchFile { return nil }
      throw WormholeError(error, operation(), name)
    }
  }

  func openDirectory(making: Bool) throws(Errno) -> SlotDirectory {
    if let directory = opened.withLock({ $0 }) { return directory }
    let parent = try container.folder(folder)
    let directory: SlotDirectory
    do throws(Errno) {
      directory = try SlotDirectory(open: escaped, in: parent)
    } catch {
      guard making, error == .noSuchFile else { throw error }
      try SlotDirectory.make(escaped, in: parent, container)
      directory = try SlotDirectory(open: escaped, in: parent)
    }
    opened.withLock { $0 = directory }
    container.noteOpened(self)
    return directory
  }

  /// Closes what is open, unless it is in use: it opens again when it is needed.
  func closeIfIdle() {
    guard turns.tryTake() else { return }
    defer { turns.giveBack() }
    forgetDirectory()
    lockState.close()
  }

  /// Forgets the open directory: it is no longer the one under the slot's name.
  func forgetDirectory() {
    opened.withLock { $0 = nil }
  }

  func find(
    in directory: SlotDirectory, _ operation: @autoclosure () -> String,
    _ file: File = .value
  ) throws(WormholeError) -> FoundFile {
    do throws(FileReading.Refusal) {
      if let home, file == .value {
        return try container.reading.read(home.file, in: home.directory.descriptor)
      }
      return try container.reading.read(file.name, in: directory.descriptor)
    } catch {
      throw error.error(operation(), name, String(cString: file.name))
    }
  }

  /// Turns to the kept value where the latest is damaged, or has been taken away by hand.
  func content(
    of found: FoundFile, in directory: SlotDirectory, _ operation: @autoclosure () -> String
  ) throws(WormholeError) -> Content {
    if case .sound(let bytes, _) = found { return .value(bytes, recovered: false) }
    let kept = try find(in: directory, operation(), .kept)
    switch (found, kept) {
    case (_, .sound(let bytes, _)): return .value(bytes, recovered: true)
    case (.damaged(let reason, _), _): return .damaged(reason)
    default: return .nothing
    }
  }
}

extension FileReading.Refusal {
  func error(_ operation: String, _ name: String, _ file: String) -> WormholeError {
    switch self {
    case .system(let error):
      WormholeError(error, operation, name)
    case .kind(let kind):
      WormholeError(
        .refused, operation, name, because: "its \(file) is no plain file but a \(kind.name)",
        hint: "look who put it there, and move it away")
    case .owner(let owner):
      WormholeError(
        .refused, operation, name, because: "its \(file) belongs to user \(owner)",
        hint: "look who put it there, and move it away")
    case .tooLarge(let size):
      WormholeError(
        .tooLarge, operation, name, because: "its \(file) has \(size) bytes, more than the limit")
    }
  }
}

extension FileStatus.Kind {
  fileprivate var name: String {
    switch self {
    case .regular: "plain file"
    case .directory: "directory"
    case .symbolicLink: "symbolic link"
    case .fifo: "FIFO"
    case .socket: "socket"
    case .device: "device"
    }
  }
}
