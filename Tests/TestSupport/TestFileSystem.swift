internal import WormholeCTesting
package import WormholeSyscalls

/// A test's own small file system; unmounted when the test releases the object.
package final class TestFileSystem {
  package enum Kind: String, CaseIterable, Sendable {
    case ext4, xfs, btrfs
    /// A directory seen through FUSE, as of a network.
    case fuse
    /// Ext4 with space for few files.
    case fewFiles
    /// One megabyte of memory.
    case memory

    /// What makes it.
    fileprivate var maker: [String] {
      switch self {
      case .ext4: ["mkfs.ext4", "-q", "-F"]
      case .xfs: ["mkfs.xfs", "-q", "-f"]
      case .fewFiles: ["mkfs.ext4", "-q", "-F", "-N", "64"]
      case .btrfs: ["mkfs.btrfs", "-q", "-f"]
      case .fuse: ["bindfs"]
      case .memory: []
      }
    }

    fileprivate var needsDisk: Bool { self != .memory && self != .fuse }

    /// The image's size; the holes in the image take up no space.
    fileprivate var size: Int {
      switch self {
      case .ext4: 64 << 20
      case .xfs: 320 << 20
      case .btrfs: 128 << 20
      case .fewFiles: 8 << 20
      case .memory, .fuse: 0
      }
    }
  }

  package let kind: Kind
  /// Where it is mounted.
  package let path: String
  private let folder: TemporaryDirectory
  private var isMounted = false

  /// Makes a file system and mounts it; returns nil, and prints a notice, where the machine cannot.
  package static func make(_ kind: Kind, for what: String) throws -> TestFileSystem? {
    guard Processes.effectiveUser == 0 else {
      if Processes.environment("CI") != nil, Processes.environment("WORMHOLE_NO_ROOT") == nil {
        throw Failed(description: "\(what): needs root; set WORMHOLE_NO_ROOT to go without")
      } else {
        skip(what, because: "only root mounts file systems")
      }
      return nil
    }
    if let maker = kind.maker.first, Programs.installed(maker) == nil {
      skip(what, missing: maker)
      return nil
    }
    let isBare = (try? Descriptor.open(path: "/dev/loop-control", [.path])) == nil
    if kind.needsDisk, isBare {
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
    if kind == .fuse { try folder.descriptor.makeDirectory("behind", mode: 0o700) }
    guard kind.needsDisk, let maker = kind.maker.first else { return }
    let image = try folder.descriptor.open("image", [.writeOnly, .create], mode: 0o600)
    try image.truncate(to: kind.size)
    try must(maker, Array(kind.maker.dropFirst()) + [folder.path + "/image"])
  }

  deinit {
    // What is still in use goes when its last user does; the image must not hold the disk.
    if isMounted { _ = try? run("umount", ["--lazy", path]) }
  }

  package func mount() throws {
    switch kind {
    case .memory: try must("mount", ["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", path])
    case .fuse: try must("bindfs", [folder.path + "/behind", path])
    default: try must("mount", ["-o", "loop", folder.path + "/image", path])
    }
    isMounted = true
  }

  /// Unmounts the file system; ended processes may still hold it for a moment.
  package func unmount() throws {
    try eventually("\(kind) is unmounted") {
      try run("umount", [path]).status == .exited(0)
    }
    isMounted = false
    guard ![.memory, .fuse].contains(kind) else { return }
    // In a namespace that another test has made in the meantime, the image is still mounted.
    // Mounted again, it would be the same file system that was cut.
    try eventually("\(kind) is mounted nowhere") {
      try run("losetup", ["-j", folder.path + "/image"]).output.isEmpty
    }
  }

  package func remount(readOnly: Bool) throws {
    // While another test starts a program, the child has copies of all that is open.
    try eventually("\(kind) is mounted anew") {
      let option = readOnly ? "remount,ro" : "remount,rw"
      return try run("mount", ["-o", option, path]).status == .exited(0)
    }
  }

  /// Loses all data that is not on disk, as a power cut does; returns the time when the loss began.
  package func cut() throws -> Instant {
    let mounted = try Descriptor.open(path: path, [.readOnly, .directory])
    // What must never be cut is the machine's own file system.
    let isOwn = try mounted.status().device != (try folder.descriptor.status().device)
    guard isMounted, isOwn else { throw Failed(description: "\(path) is not a disk of the test") }
    let moment = Instant.now
    guard testing_cut_file_system(path) == 0 else { throw Errno.current }
    return moment
  }

  /// Stops the server of a FUSE file system until ``goOn()``; every call on the file system waits.
  package func stall() throws {
    let server = try server()
    try Processes.send(.stop, to: server)
    try eventually("the server stops") { try Processes.isStopped(server) }
  }

  package func goOn() throws { try Processes.send(.go, to: try server()) }

  /// The process that serves the file system.
  private func server() throws -> Int32 {
    let processes = try Descriptor.open(path: "/proc", [.readOnly, .directory])
    for process in try processes.names().compactMap({ Int32($0) }) {
      // A process that has just ended has no command line.
      let line = try? processes.open("\(process)/cmdline", [.readOnly]).contents()
      let words = (line ?? []).split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
      if words.last == path, words.first?.hasSuffix("bindfs") == true { return process }
    }
    throw Failed(description: "nobody answers for \(path)")
  }

  private func must(_ program: String, _ arguments: [String]) throws {
    let outcome = try run(program, arguments)
    guard outcome.status == .exited(0) else {
      throw Failed(description: "\(program): \(outcome.errors)")
    }
  }

  package struct Failed: Error, CustomStringConvertible {
    package let description: String
  }
}

extension TestFileSystem {
  /// Takes all space, for bytes or, where files are scarcer, for files; when called again, the
  /// space that has become free since.
  package func fill() throws {
    let root = try Descriptor.open(path: path, [.readOnly, .directory])
    try? root.makeDirectory("fill", mode: 0o700)
    let fill = try root.open("fill", [.readOnly, .directory])
    if kind == .fewFiles {
      try untilFull { number in
        _ = try fill.open("\(number)", [.writeOnly, .create], mode: 0o600)
      }
      return
    }
    let file = try fill.open("big", [.writeOnly, .create, .append], mode: 0o600)
    for size in [1 << 20, 1 << 12, 1] {
      let words = String(repeating: "x", count: size)
      try untilFull { _ in try file.write(words) }
    }
    try? file.sync()
  }

  private func untilFull(_ body: (Int) throws -> Void) throws {
    for number in 0..<1_000_000 {
      do {
        try body(number)
      } catch let error as Errno {
        guard error == .noSpace else { throw error }
        return
      }
    }
    throw Failed(description: "\(kind) does not get full")
  }

  package func makeRoom() throws {
    let root = try Descriptor.open(path: path, [.readOnly, .directory])
    let fill = try root.open("fill", [.readOnly, .directory])
    // A child that another test is starting may still have the file open, and hold its space.
    if kind != .fewFiles { try fill.open("big", [.writeOnly]).truncate(to: 0) }
    try fill.removeContents()
    try root.removeDirectory("fill")
  }
}
