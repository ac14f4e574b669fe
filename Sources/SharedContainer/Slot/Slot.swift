internal import Synchronization
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
  /// The same, as it is in the folder.
  package let escaped: String
  /// Whether its updates wait for nobody else's, so that one of them may run inside another slot's.
  let isInnermost: Bool

  /// Its value, from the folder it lies in; not a string, as to hand one to the kernel takes an
  /// allocation.
  let valuePath: [CChar]
  private let opened = Monitor<SlotDirectory?>(nil)
  private let hasNewName = Atomic<Bool>(false)
  let turns = Turns()
  let lockState = LockState()

  init(
    container: Container, folder: Container.Folder, name: String, _ escaped: String,
    isInnermost: Bool = false
  ) {
    self.isInnermost = isInnermost
    self.container = container
    self.folder = folder
    self.name = name
    self.escaped = escaped
    valuePath = Array("\(escaped)/\(Self.valueName)".utf8CString)
  }

  /// What the slot holds.
  package enum Content: Sendable {
    case nothing
    /// The bytes of a sound property list. Recovered: the latest value is damaged, and this is the
    /// one before it that was kept.
    case value([UInt8], recovered: Bool)
    /// What is there is damaged, and nothing sound is kept.
    case damaged(String)
    /// What is there has so many bytes, more than the limit, and was not read.
    ///
    /// Only a change is told so, which may replace it; to read is an error.
    case tooLarge(Int)
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

  /// From the container's directory.
  var locksPath: String { "\(folder.rawValue)/\(escaped)/lock" }

  package static let valueName = "value.plist"
  static let keptName = "kept.plist"

  /// What errors call it.
  package var title: String { (folder == .channels ? "channel" : folder.rawValue) }

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
      let content = try content(of: found, in: directory, operation)
      // What is kept stands in for a value that was taken away, not for one that has just come.
      if case (.missing, .value) = (found, content), hasValue(in: directory) { continue }
      return content
    }
  }

  private func hasValue(in directory: SlotDirectory) -> Bool {
    (try? directory.descriptor.status(of: File.value.name)) != nil
  }

  /// The directory, without making one.
  func openDirectory(_ operation: @autoclosure () -> String) throws(WormholeError) -> SlotDirectory?
  {
    do throws(Errno) {
      return try openDirectory(making: false)
    } catch {
      guard error == .noSuchFile else {
        throw WormholeError(error, operation(), name, in: container, locksPath)
      }
      // Nothing lies in a container that was removed, and that is not what was asked.
      if let end = container.endIfRemoved(folder) { throw end.error(operation(), name) }
      return nil
    }
  }

  func openDirectory(making: Bool) throws(Errno) -> SlotDirectory {
    if let directory = opened.withLock({ $0 }) { return directory }
    do throws(Errno) {
      return try openAnew(making: making)
    } catch {
      // Its folder may have been removed, and another may have come in its place meanwhile.
      guard error == .noSuchFile, container.forgetIfStale(folder) || making else { throw error }
      return try openAnew(making: making)
    }
  }

  private func openAnew(making: Bool) throws(Errno) -> SlotDirectory {
    let parent = try making ? container.folder(folder) : container.existingFolder(folder)
    let directory = try openAnew(in: parent, making: making)
    opened.withLock { $0 = directory }
    container.noteOpened(self)
    return directory
  }

  private func openAnew(in parent: OpenDirectory, making: Bool) throws(Errno) -> SlotDirectory {
    var tries = 0
    while true {
      do throws(Errno) {
        return try SlotDirectory(open: escaped, in: parent, container.options.sharing)
      } catch {
        // Somebody may be removing it, each time that it was made.
        tries += 1
        guard making, error == .noSuchFile, tries < 100 else { throw error }
        try SlotDirectory.make(escaped, in: parent, container)
      }
    }
  }

  /// Closes what is open, and opens again when it is needed; false if it is in use.
  func closeIfIdle() -> Bool {
    guard turns.tryTake() else { return false }
    defer { turns.giveBack() }
    forgetDirectory()
    lockState.close()
    return true
  }

  /// Another directory has the slot's name, or none: what is open is not used any more.
  func noteNewName() {
    hasNewName.store(true, ordering: .releasing)
    forgetDirectory()
  }

  /// Lets go of what a change would use, for the thread whose turn it is, if another directory has
  /// the name.
  func lookAtName() {
    guard hasNewName.load(ordering: .relaxed) else { return }
    hasNewName.store(false, ordering: .sequentiallyConsistent)
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
      return try container.reading.read(file.name, in: directory.descriptor)
    } catch {
      throw error.error(operation(), name, String(cString: file.name))
    }
  }

  /// What a change finds: also a file that is too large to be read, and can be replaced.
  func findForChange(
    in directory: SlotDirectory, _ operation: @autoclosure () -> String
  ) throws(WormholeError) -> (file: FoundFile, content: Content) {
    let found: FoundFile
    do throws(FileReading.Refusal) {
      found = try container.reading.read(File.value.name, in: directory.descriptor)
    } catch {
      guard case .tooLarge(let size) = error,
        let status = try? directory.descriptor.status(of: File.value.name)
      else { throw error.error(operation(), name, Self.valueName) }
      return (.damaged("it has \(size) bytes, more than the limit", status), .tooLarge(size))
    }
    return (found, try content(of: found, in: directory, operation()))
  }

  /// What whoever needs the value is told of one that is too large.
  package static func tooLarge(
    _ size: Int, _ operation: String, _ name: String
  ) -> WormholeError {
    FileReading.Refusal.tooLarge(size).error(operation, name, valueName)
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
    case .mode(let mode):
      WormholeError(
        .refused, operation, name,
        because: "others may write to its \(file), which has the mode \(String(mode, radix: 8))",
        hint: "look what is in it, and 'chmod o-w' it")
    case .tooLarge(let size):
      WormholeError(
        .tooLarge, operation, name, because: "its \(file) has \(size) bytes, more than the limit",
        hint: "open it with a larger limit, or put another value over it")
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
