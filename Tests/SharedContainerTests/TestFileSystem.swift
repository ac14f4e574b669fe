import Syscalls
import TestSupport
import Testing

/// A small file system of one test's own; unmounted when the test lets go of it.
final class TestFileSystem {
  enum Kind: String, CaseIterable, Sendable {
    case ext4, xfs
    /// Ext4 with room for few files.
    case fewFiles
    /// One megabyte of memory.
    case memory

    /// What makes it.
    fileprivate var maker: [String] {
      switch self {
      case .ext4: ["mkfs.ext4", "-q", "-F"]
      case .xfs: ["mkfs.xfs", "-q", "-f"]
      case .fewFiles: ["mkfs.ext4", "-q", "-F", "-N", "64"]
      case .memory: []
      }
    }

    /// The image's size; the holes in it take no room.
    fileprivate var size: Int {
      switch self {
      case .ext4: 64 << 20
      case .xfs: 320 << 20
      case .fewFiles: 8 << 20
      case .memory: 0
      }
    }
  }

  let kind: Kind
  /// Where it is mounted.
  let path: String
  private let folder: TemporaryDirectory
  private var isMounted = false

  /// Makes a file system and mounts it; nil, and a word about it, where that cannot be done.
  static func make(_ kind: Kind, for what: String) throws -> TestFileSystem? {
    guard Processes.effectiveUser == 0 else {
      if Processes.environment("CI") != nil, Processes.environment("WORMHOLE_NO_ROOT") == nil {
        Issue.record("\(what): needs root; set WORMHOLE_NO_ROOT to go without")
      } else {
        skip(what, because: "only root mounts file systems")
      }
      return nil
    }
    if let maker = kind.maker.first, Programs.installed(maker) == nil {
      skip(what, because: "there is no \(maker)")
      return nil
    }
    let isBare = (try? Descriptor.open(path: "/dev/loop-control", [.path])) == nil
    if kind != .memory, isBare {
      skip(what, because: "there are no loop devices")
      return nil
    }
    let made = try TestFileSystem(kind)
    do {
      try made.mount()
    } catch {
      // A container may call its user root and let it mount nothing all the same.
      skip(what, because: "\(error)")
      return nil
    }
    return made
  }

  private init(_ kind: Kind) throws {
    self.kind = kind
    folder = try TemporaryDirectory()
    path = folder.path + "/mounted"
    try folder.descriptor.makeDirectory("mounted", mode: 0o700)
    guard let maker = kind.maker.first else { return }
    let image = try folder.descriptor.open("image", [.writeOnly, .create], mode: 0o600)
    try image.truncate(to: kind.size)
    try must(maker, Array(kind.maker.dropFirst()) + [folder.path + "/image"])
  }

  deinit {
    // What is still in use goes when its last user does; the image must not hold the disk.
    if isMounted { _ = try? run("umount", ["--lazy", path]) }
  }

  func mount() throws {
    if kind == .memory {
      try must("mount", ["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", path])
    } else {
      try must("mount", ["-o", "loop", folder.path + "/image", path])
    }
    isMounted = true
  }

  /// Unmounts it; ended processes may still hold it for a moment.
  func unmount() throws {
    try eventually("\(kind) is unmounted") {
      try run("umount", [path]).status == .exited(0)
    }
    isMounted = false
  }

  func remount(readOnly: Bool) throws {
    try must("mount", ["-o", readOnly ? "remount,ro" : "remount,rw", path])
  }

  /// Loses all that is not on disk, as a power cut does; answers when it began to.
  func cut() throws -> Instant {
    let mounted = try Descriptor.open(path: path, [.readOnly, .directory])
    // What must never be cut is the machine's own file system.
    try #require(isMounted)
    try #require(try mounted.status().device != (try folder.descriptor.status().device))
    let moment = Instant.now
    try mounted.cutFileSystem()
    return moment
  }

  private func must(_ program: String, _ arguments: [String]) throws {
    let outcome = try run(program, arguments)
    guard outcome.status == .exited(0) else {
      throw Failed(description: "\(program): \(outcome.errors)")
    }
  }

  struct Failed: Error, CustomStringConvertible { let description: String }
}
