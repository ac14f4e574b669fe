import SharedContainer
import Syscalls

/// Where a run takes place that is not simply here: on a file system of another kind, or with half
/// of its processes in namespaces of their own.
///
/// All of it happens in a mount namespace and a process namespace of the program's own, which end
/// with it, however it ends: nobody else sees what is mounted, and nothing stays.
final class Machine {
  enum Kind: String, CaseIterable, Sendable {
    case ext4, xfs, btrfs, tmpfs, overlay
    /// A directory seen through FUSE, as of a network.
    case fuse
    /// Processes to which those of the others have other numbers, and processes that are root among
    /// themselves only.
    case pids, users

    var isFileSystem: Bool { self != .pids && self != .users }

    /// What makes it, with the arguments before the path of the image.
    fileprivate var maker: [String]? {
      switch self {
      case .ext4: ["mkfs.ext4", "-q", "-F"]
      case .xfs: ["mkfs.xfs", "-q", "-f"]
      case .btrfs: ["mkfs.btrfs", "-q", "-f"]
      default: nil
      }
    }

    /// Says nothing of its own when what it runs is killed.
    private static let guardian = "exec 3>&2 2>/dev/null; \"$@\" 2>&3 3>&-; exit $?"

    /// Puts a program in front of another one, so that that has a namespace of its own.
    func apart(_ program: String, _ arguments: [String]) -> (String, [String]) {
      switch self {
      // The first process of a namespace is one that signals of its own do not end.
      case .pids:
        (
          "unshare",
          ["--pid", "--fork", "--kill-child", "sh", "-c", Self.guardian, "sh", program]
            + arguments
        )
      case .users: ("unshare", ["--user", "--map-root-user", program] + arguments)
      default: (program, arguments)
      }
    }
  }

  let kind: Kind
  /// Where runs make their directories.
  let path: String
  private let folder: String
  private var isMounted = false

  /// Makes a file system and mounts it.
  ///
  /// - Parameter folder: a directory that is there, for what it needs.
  init(_ kind: Kind, in folder: String) throws {
    self.kind = kind
    self.folder = folder
    guard kind.isFileSystem else {
      path = folder
      let (program, arguments) = kind.apart("true", [])
      try Self.must(program, arguments)
      return
    }
    path = folder + "/mounted"
    for name in ["mounted", "below", "above", "work"] {
      try Descriptor.makeDirectory(path: "\(folder)/\(name)", mode: 0o700)
    }
    try mount()
    isMounted = true
  }

  func unmount() {
    guard isMounted else { return }
    isMounted = false
    try? Self.must("umount", ["--lazy", path])
  }

  private func mount() throws {
    switch kind {
    case .tmpfs: try Self.must("mount", ["-t", "tmpfs", "-o", "size=512m,mode=700", "tmpfs", path])
    case .overlay:
      let places = "lowerdir=\(folder)/below,upperdir=\(folder)/above,workdir=\(folder)/work"
      try Self.must("mount", ["-t", "overlay", "-o", places, "overlay", path])
    case .fuse: try Self.must("bindfs", [folder + "/below", path])
    default:
      let image = try Descriptor.open(
        path: folder + "/image", [.writeOnly, .create], mode: 0o600)
      // The holes in it take no room.
      try image.truncate(to: 512 << 20)
      if let maker = kind.maker { try Self.make(maker + [folder + "/image"]) }
      try Self.must("mount", ["-o", "loop", folder + "/image", path])
    }
  }

  private static func must(_ program: String, _ arguments: [String]) throws {
    guard (try? Processes.path(ofProgram: program)) != nil else {
      throw Failed(description: "there is no \(program)")
    }
    let status = try Child.spawn(program, arguments).wait()
    guard status == .exited(0) else {
      throw Failed(description: "'\(program)' ended with status \(status.code)")
    }
  }

  /// What makers tell people is not wanted.
  private static func make(_ words: [String]) throws {
    try must("sh", ["-c", "exec \"$@\" >/dev/null 2>&1", "sh"] + words)
  }

  struct Failed: Error, CustomStringConvertible {
    let description: String
  }

  /// Takes what is worth keeping out of it.
  func copy(_ directory: String, to place: String) throws {
    try Self.must("cp", ["-a", "--", directory, place])
  }

  // MARK: Namespaces of the program's own

  private static let mark = "WORMHOLE_STRESS_MACHINES"

  /// Whether this process is in them.
  static var isInside: Bool { Processes.environment(mark) != nil }

  /// Runs this program again, in namespaces of its own; answers how it ended.
  ///
  /// - Throws: ``Failed`` where that cannot be done.
  static func runInside() throws -> Int32 {
    guard Processes.effectiveUser == 0 else {
      throw Failed(description: "only root mounts file systems")
    }
    let wall = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    try must("unshare", wall + ["true"])
    try must("setpriv", ["--pdeathsig", "KILL", "true"])
    let program = try Processes.ownProgram()
    let arguments = Processes.arguments.map { String(cString: $0) }
    // Whoever ends this process ends that one, and the namespaces with it.
    let child = try Child.spawn(
      "setpriv", ["--pdeathsig", "KILL", "unshare"] + wall + [program] + arguments,
      environment: Processes.environment(setting: ["\(mark)=1"]))
    return try child.wait().code
  }
}
