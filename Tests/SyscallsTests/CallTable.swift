import TestSupport
import Testing
import WormholeSyscalls

#if !FAULT_POINTS
  #error("These tests inject faults: build them for debugging, or with --traits FaultPoints.")
#endif

/// One wrapper of the room, ready to be called.
struct Row: Sendable, CustomTestStringConvertible {
  let call: Call
  let wrapper: String
  /// How the wrapper treats EINTR.
  let interruption: Interruption
  let body: @Sendable (Scene) throws -> Void

  enum Interruption { case retried, thrown, answered }

  var testDescription: String { "\(call.rawValue): \(wrapper)" }

  init(
    _ call: Call, _ wrapper: String, _ interruption: Interruption = .retried,
    _ body: @escaping @Sendable (Scene) throws -> Void
  ) {
    self.call = call
    self.wrapper = wrapper
    self.interruption = interruption
    self.body = body
  }
}

/// What a row finds: a directory, a file of ten bytes in it, an inotify instance, a pipe, a port.
final class Scene {
  let folder: TemporaryDirectory
  let file: Descriptor
  let other: Descriptor
  let inotify: Inotify
  let pipe: Pipe
  let listener: LoopbackListener
  private var children: [Child] = []

  init() throws {
    folder = try TemporaryDirectory()
    try folder.write("0123456789", to: "file")
    file = try folder.descriptor.open("file", [.readWrite])
    other = try folder.descriptor.open("other", [.readWrite, .create], mode: 0o600)
    inotify = try Inotify()
    pipe = try Pipe()
    listener = try LoopbackListener()
    try folder.descriptor.makeSymbolicLink("link", to: "file")
    try folder.descriptor.makeDirectory("folder", mode: 0o700)
  }

  func connect() throws(Errno) -> Descriptor {
    try Descriptor.connecting(toLoopbackPort: listener.port, isVersionSix: false)
  }

  func spawn() throws(Errno) -> Child {
    let child = try Child.spawn("true")
    children.append(child)
    return child
  }

  // A child that the row has waited for cannot be waited for again.
  deinit { for child in children { _ = try? child.wait() } }
}

/// Every wrapper that makes a system call, at least one for each call.
let table: [Row] = namesTable + bytesTable + statusTable + otherTable + socketTable

private let namesTable: [Row] = [
  Row(.open, "open(_:_:)") { _ = try $0.folder.descriptor.open("file", [.readOnly]) },
  Row(.open, "open(path:_:)") {
    _ = try Descriptor.open(path: $0.folder.path, [.readOnly, .directory])
  },
  Row(.open, "open(following:_:)") {
    _ = try Descriptor.open(following: $0.folder.path + "/link", [.readOnly])
  },
  Row(.open, "PseudoTerminal()") { _ in _ = try PseudoTerminal() },
  Row(.close, "close()", .thrown) { try $0.folder.descriptor.duplicate().close() },
  Row(.rename, "rename(_:to:_:)") {
    try $0.folder.descriptor.rename("file", to: $0.folder.descriptor, "renamed")
  },
  Row(.link, "linkOpen(to:_:)") {
    try $0.file.linkOpen(to: $0.folder.descriptor, "linked")
  },
  Row(.link, "link(_:to:_:)") {
    try $0.folder.descriptor.link("file", to: $0.folder.descriptor, "linked")
  },
  Row(.unlink, "unlink(_:)") { try $0.folder.descriptor.unlink("file") },
  Row(.mkdir, "makeDirectory(_:mode:)") {
    try $0.folder.descriptor.makeDirectory("new", mode: 0o700)
  },
  Row(.mkdir, "makeDirectory(path:mode:)") {
    try Descriptor.makeDirectory(path: $0.folder.path + "/new", mode: 0o700)
  },
  Row(.rmdir, "removeDirectory(_:)") { try $0.folder.descriptor.removeDirectory("folder") },
  Row(.rmdir, "removeDirectory(path:)") {
    try Descriptor.removeDirectory(path: $0.folder.path + "/folder")
  },
  Row(.symlink, "makeSymbolicLink(_:to:)") {
    try $0.folder.descriptor.makeSymbolicLink("another", to: "file")
  },
  Row(.readlink, "readSymbolicLink(_:)") { _ = try $0.folder.descriptor.readSymbolicLink("link") },
  Row(.mknod, "makeFile(_:mode:type:)") { try $0.folder.descriptor.makeFile("empty", mode: 0o600) },
  Row(.getdents, "names()") { _ = try $0.folder.descriptor.names() },
  Row(.lseek, "names()") { _ = try $0.folder.descriptor.names() },
]

private let bytesTable: [Row] = [
  Row(.read, "read(into:)") { scene in
    try withBuffer(4) { _ = try scene.file.read(into: $0) }
  },
  Row(.pread, "readFully(into:at:)") { scene in
    try withBuffer(4) { _ = try scene.file.readFully(into: $0) }
  },
  Row(.write, "writeFully(_:)") { scene in
    try scene.file.writeFully([0, 0, 0, 0])
  },
  Row(.pwrite, "writeFully(_:at:)") { scene in
    try scene.file.writeFully(CollectionOfOne(UInt32(0)).span.bytes, at: 3)
  },
  Row(.ftruncate, "truncate(to:)") { try $0.file.truncate(to: 3) },
  Row(.fallocate, "reserve(_:)") { try $0.file.reserve(8192) },
  Row(.fsync, "sync()") { try $0.file.sync() },
  Row(.clone, "clone(from:)") {
    do throws(Errno) {
      try $0.other.clone(from: $0.file)
    } catch {
      // Most file systems cannot; the call was made all the same.
      guard error == .notSupported || error == .invalidArgument else { throw error }
    }
  },
  Row(.lseek, "nextData(from:)") { _ = try $0.file.nextData(from: 0) },
  Row(.lseek, "nextHole(from:)") { _ = try $0.file.nextHole(from: 0) },
]

private let statusTable: [Row] = [
  Row(.fstat, "status()") { _ = try $0.file.status() },
  Row(.fstatat, "status(of:)") { _ = try $0.folder.descriptor.status(of: "file") },
  Row(.fstatfs, "fileSystem()") { _ = try $0.folder.descriptor.fileSystem() },
  Row(.fchmod, "setMode(_:)") { try $0.file.setMode(0o640) },
  Row(.syncRange, "startWriting()") { try $0.file.startWriting() },
  Row(.utimensat, "touch()") { try $0.file.touch() },
]

private let otherTable: [Row] = [
  Row(.flock, "lock(_:)", .thrown) { try $0.file.lock(.exclusive) },
  Row(.flock, "tryLock(_:)") { _ = try $0.file.tryLock(.exclusive) },
  Row(.flock, "unlock()") { try $0.file.unlock() },
  Row(.ofdlock, "tryPresenceLock()") { _ = try $0.file.tryPresenceLock() },
  Row(.ofdlock, "releasePresenceLock()") { try $0.file.releasePresenceLock() },
  Row(.ofdquery, "isPresenceLocked()") { _ = try $0.file.isPresenceLocked() },
  Row(.ofdquery, "isPresenceLockedOrShared()") { _ = try $0.file.isPresenceLockedOrShared() },
  Row(.duplicate, "duplicate()") { _ = try $0.file.duplicate() },
  Row(.inotifyInit, "Inotify()") { _ in _ = try Inotify() },
  Row(.inotifyAdd, "watch(_:_:)") { _ = try $0.inotify.watch($0.folder.descriptor, .movedTo) },
  Row(.inotifyRemove, "unwatch(_:)") {
    try $0.inotify.unwatch(try $0.inotify.watch($0.folder.descriptor, .movedTo))
  },
  Row(.epoll, "WaitSet()") { _ in _ = try WaitSet() },
  Row(.epollControl, "add(_:as:)") { try WaitSet().add($0.pipe.reading, as: 0) },
  Row(.epollControl, "tellAgain(of:as:)") { scene in
    let set = try WaitSet()
    do throws(Errno) {
      try set.tellAgain(of: scene.pipe.reading, as: 0)
    } catch {
      // It is no member; the call was made all the same.
      guard error == .noSuchFile else { throw error }
    }
  },
  Row(.epollWait, "wait(until:)", .answered) { _ in _ = try WaitSet().wait(until: .now) },
  Row(.eventfd, "WakeDescriptor()") { _ in _ = try WakeDescriptor() },
  Row(.pipe, "Pipe()") { _ in _ = try Pipe() },
  Row(.spawn, "spawn(_:)") { _ = try $0.spawn() },
  Row(.waitpid, "wait()") { _ = try $0.spawn().wait() },
]

private let socketTable: [Row] = [
  Row(.socket, "connecting(toLoopbackPort:isVersionSix:)") { _ = try $0.connect() },
  Row(.connect, "connecting(toLoopbackPort:isVersionSix:)") { _ = try $0.connect() },
  Row(.receive, "receive(into:)") { scene in
    var buffer: [UInt8] = [0]
    _ = try scene.connect().receive(into: &buffer)
  },
  Row(.send, "send(_:from:)") { _ = try $0.connect().send([1]) },
  Row(.poll, "wait(writes:or:until:)", .answered) {
    try $0.connect().wait(writes: false, or: try WakeDescriptor(), until: .now)
  },
  Row(.poll, "wait(until:)", .answered) { _ in try WakeDescriptor().wait(until: .now) },
  Row(.listen, "PortListener(address:port:)") { _ in
    _ = try PortListener(address: "127.0.0.1", port: 0)
  },
  Row(.accept, "accept()") { _ in
    _ = try PortListener(address: "127.0.0.1", port: 0).accept()
  },
  Row(.poll, "wait(for:until:)", .answered) { scene in
    var awaited = [WaitEntry(scene.pipe.reading.rawValue)]
    try WaitEntry.wait(for: &awaited, until: .now)
  },
]

/// Gives the body some bytes, zero at first.
func withBuffer<Result>(
  _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws -> Result
) rethrows -> Result {
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
  defer { buffer.deallocate() }
  buffer.initializeMemory(as: UInt8.self, repeating: 0)
  return try body(buffer)
}
