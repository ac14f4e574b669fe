internal import Synchronization
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A value that processes share, with its lock: a directory that contains `value.plist`,
/// `kept.plist` and `lock/`.
///
/// Reading takes no lock. Every change uses ``change(_:durability:policy:patience:_:)``: read under
/// the lock, compute, commit.
package final class Slot: Sendable {
  package let container: Container
  package let folder: Container.Folder
  /// The unescaped name.
  package let name: String
  /// The name as it is in the folder.
  package let escaped: String
  /// Whether the slot's updates never wait for other slots, and may therefore run inside an update
  /// of a different slot.
  let isInnermost: Bool

  /// The path of the value below the folder; not a string, because passing a string to the kernel
  /// takes an allocation.
  let valuePath: [CChar]
  private let opened = Monitor<SlotDirectory?>(nil)
  private let hasNewName = Atomic<Bool>(false)
  let turns = ThreadQueue()
  let lockState = LockState()
  let saving = SlotSaveState()

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

  /// The content of the slot.
  package enum Content: Sendable {
    case nothing
    /// The bytes of a sound property list. Recovered: the latest value is damaged, and these bytes
    /// are the previous saved value.
    case value([UInt8], recovered: Bool)
    /// The latest value is damaged, and there is no sound previous value.
    case damaged(String)
    /// The latest value has this number of bytes, more than the limit, and was not read.
    ///
    /// Only a change gets this case, because a change may replace the value; readers get an error.
    case tooLarge(Int)

    /// Whether a power cut leaves the content, once its name is synced.
    package var isSynced: Bool {
      switch self {
      case .nothing: true
      case .value(let bytes, recovered: false): BinaryPropertyList.isMarkedSynced(bytes)
      case .value, .damaged, .tooLarge: false
      }
    }
  }

  /// The files of a slot, by names that the kernel takes without conversion.
  enum File {
    case value, kept

    var name: UnsafePointer<CChar> {
      switch self {
      case .value: ("value.plist" as StaticString).cString
      case .kept: ("kept.plist" as StaticString).cString
      }
    }
  }

  /// The path below the container's directory.
  var locksPath: String { "\(folder.rawValue)/\(escaped)/lock" }

  /// The path of the copy, below the container's directory.
  package var keptPath: String { "\(folder.rawValue)/\(escaped)/\(Self.keptName)" }

  package static let valueName = "value.plist"
  static let keptName = "kept.plist"

  /// The slot's kind, for errors.
  package var title: String { (folder == .channels ? "channel" : folder.rawValue) }

  /// Reads the present value.
  package func read() throws(WormholeError) -> Content {
    // Built only for an error.
    var operation: String { "read \(title)" }
    while true {
      guard let directory = try openDirectory(operation) else { return .nothing }
      let found = try find(in: directory, operation)
      if case .missing = found, directory.isStale {
        forgetDirectory()
        continue
      }
      let content = try content(of: found, in: directory, operation)
      // The previous value replaces a value that was removed, but not a value that has just
      // arrived.
      if case (.missing, .value) = (found, content), hasValue(in: directory) { continue }
      return content
    }
  }

  /// Reads the present value, with its file if the file may stay open: see ``isLatest(_:)``.
  package func readKeepingOpen() throws(WormholeError) -> (content: Content, file: CommittedFile?) {
    let opened = openValue()
    let content = try read()
    // A value that arrived in between has another file.
    guard let opened, isLatest(opened) else { return (content, nil) }
    return (content, opened)
  }

  private func openValue() -> CommittedFile? {
    guard let directory = try? openDirectory(making: false), directory.keepsOpen,
      let file = try? directory.descriptor.open(File.value.name, .readOnlyNonBlocking),
      let committed = try? CommittedFile(file, [], nil), committed.staysOpen
    else { return nil }
    return committed
  }

  /// Whether the file is the present value.
  ///
  /// An open inode cannot become another file, and a visible file is never written: its content is
  /// the content that was read.
  package func isLatest(_ file: CommittedFile) -> Bool {
    guard let directory = try? openDirectory(making: false) else { return false }
    return file.found(as: valuePath, in: directory.parent.descriptor) != nil
  }

  /// Reads the copy of an earlier value; nil without a sound copy.
  package func readKept() throws(WormholeError) -> [UInt8]? {
    let operation = "read \(title)"
    while let directory = try openDirectory(operation) {
      let found = try find(in: directory, operation, .kept)
      if case .sound(let bytes, _) = found { return bytes }
      guard case .missing = found, directory.isStale else { return nil }
      forgetDirectory()
    }
    return nil
  }

  private func hasValue(in directory: SlotDirectory) -> Bool {
    (try? directory.descriptor.status(of: File.value.name)) != nil
  }

  /// Returns the directory without making a missing one.
  func openDirectory(_ operation: @autoclosure () -> String) throws(WormholeError) -> SlotDirectory?
  {
    do throws(Errno) {
      return try openDirectory(making: false)
    } catch {
      guard error == .noSuchFile else {
        throw WormholeError(error, operation(), self)
      }
      // A removed container would look like an empty slot: the caller gets an error instead.
      if let end = container.endIfRemoved(folder) { throw end.error(operation(), name) }
      return nil
    }
  }

  func openDirectory(making: Bool) throws(Errno) -> SlotDirectory {
    if let directory = opened.withLock({ $0 }) { return directory }
    do throws(Errno) {
      return try openAnew(making: making)
    } catch {
      // The folder may have been removed, and made again in the meantime.
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
        // Another process may remove the directory each time.
        tries += 1
        guard making, error == .noSuchFile, tries < 100 else { throw error }
        try SlotDirectory.make(escaped, in: parent, container)
      }
    }
  }

  /// Closes the open files, and opens them again when needed; false if the slot is in use.
  func closeIfIdle() -> Bool {
    guard turns.tryTake() else { return false }
    defer { turns.giveBack() }
    forgetDirectory()
    lockState.close()
    return true
  }

  /// Another directory has the slot's name, or none: the open directory is no longer used.
  func noteNewName() {
    hasNewName.store(true, ordering: .releasing)
    forgetDirectory()
  }

  /// Releases the files that a change would use, for the thread whose turn it is, if another
  /// directory has the name.
  func lookAtName() {
    guard hasNewName.load(ordering: .relaxed) else { return }
    hasNewName.store(false, ordering: .sequentiallyConsistent)
    forgetDirectory()
    lockState.close()
  }

  /// Forgets the open directory: it no longer has the slot's name.
  func forgetDirectory() {
    opened.withLock { $0 = nil }
  }

  func find(
    in directory: SlotDirectory, _ operation: @autoclosure () -> String,
    _ file: File = .value
  ) throws(WormholeError) -> FoundFile {
    do throws(ReadRefusal) {
      return try container.reader.read(file.name, in: directory.descriptor)
    } catch {
      throw error.error(operation(), name, String(cString: file.name))
    }
  }

  /// Returns the value for a change: a file that is too large to read can still be replaced.
  func findForChange(
    in directory: SlotDirectory, _ operation: @autoclosure () -> String
  ) throws(WormholeError) -> (file: FoundFile, content: Content) {
    let found: FoundFile
    do throws(ReadRefusal) {
      found = try container.reader.read(File.value.name, in: directory.descriptor)
    } catch {
      guard case .tooLarge(let size) = error,
        let status = try? directory.descriptor.status(of: File.value.name)
      else { throw error.error(operation(), name, Self.valueName) }
      return (.damaged("the file has \(size) bytes, more than the limit", status), .tooLarge(size))
    }
    return (found, try content(of: found, in: directory, operation()))
  }

  /// Returns the error for a reader of a value that is too large.
  package static func tooLarge(
    _ size: Int, _ operation: String, _ name: String
  ) -> WormholeError {
    ReadRefusal.tooLarge(size).error(operation, name, valueName)
  }

  /// Uses the previous value if the latest is damaged, or if another tool has removed it.
  func content(
    of found: FoundFile, in directory: SlotDirectory, _ operation: @autoclosure () -> String
  ) throws(WormholeError) -> Content {
    if case .sound(let bytes, _) = found { return .value(bytes, recovered: false) }
    let kept = try find(in: directory, operation(), .kept)
    switch (found, kept) {
    case (_, .sound(let bytes, _)): return .value(bytes, recovered: true)
    case (.damaged(let reason, _), .missing):
      if let bytes = container.pastValue(in: directory.descriptor) {
        return .value(bytes, recovered: true)
      }
      // A save may have given the name to its file in the meantime.
      guard case .sound(let bytes, _) = try find(in: directory, operation(), .kept) else {
        return .damaged(reason)
      }
      return .value(bytes, recovered: true)
    case (.damaged(let reason, _), _): return .damaged(reason)
    default: return .nothing
    }
  }
}

extension ReadRefusal {
  func error(_ operation: String, _ name: String, _ file: String) -> WormholeError {
    switch self {
    case .system(let error):
      WormholeError(error, operation, name)
    case .kind(let kind):
      WormholeError(
        .refused, operation, name, because: "its \(file) is a \(kind.name), not a plain file",
        hint: "check the origin of \(file), and move the file away")
    case .owner(let owner):
      WormholeError(
        .refused, operation, name, because: "its \(file) belongs to user \(owner)",
        hint: "check the origin of \(file), and move the file away")
    case .mode(let mode):
      // Only in a group's container: in a user's own, nobody else reaches the file.
      WormholeError(
        .refused, operation, name,
        because: "unauthorized users may write to its \(file) (mode \(String(mode, radix: 8)))",
        hint: "check the content of \(file), and run 'chmod o-w' on the file")
    case .tooLarge(let size):
      WormholeError(
        .tooLarge, operation, name, because: "its \(file) has \(size) bytes, more than the limit",
        hint: "open the container with a larger limit, or put a smaller value")
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

extension Slot {
  /// The slot's identity in the log.
  package var logSubject: LogSubject {
    if folder == .channels { return LogSubject(channel: name) }
    let suites = Container.Folder.suitePrefix
    return name.utf8.starts(with: suites.utf8)
      ? LogSubject(suite: String(name.utf8.dropFirst(suites.utf8.count))) : LogSubject()
  }
}

extension WormholeError {
  /// The error of a call on the directory of a slot, or on the files of its lock.
  init(_ error: Errno, _ operation: String, _ slot: Slot) {
    self.init(
      error, operation, slot.name, in: slot.container, slot.locksPath, slot.namesOfStaging())
  }
}

extension Slot {
  /// The directories in `lock/` that commits use.
  func namesOfStaging() -> [String] {
    let locks = try? container.root.descriptor.open(locksPath, .readOnlyDirectory)
    return ((try? locks?.names()) ?? []).filter { $0.ends(with: ".d") }
  }
}
