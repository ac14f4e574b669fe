import WormholeContainerStorage
import WormholeSyscalls

/// The environment of a run: a file system of a particular kind, or namespaces for half of its
/// processes.
///
/// The run happens in a mount namespace and a process namespace of the program's own. Both
/// namespaces end with the program, however the program ends: no process outside sees the mounts,
/// and nothing remains.
final class Machine {
  enum Kind: String, CaseIterable, Sendable {
    case ext4, xfs, btrfs, tmpfs, overlay
    /// A directory behind FUSE, like a network file system.
    case fuse
    /// Processes that see the other processes under different IDs, and processes that are root in
    /// their own namespace only.
    case pids, users

    var isFileSystem: Bool { self != .pids && self != .users }

    /// The command that makes the file system, with the arguments before the path of the image.
    fileprivate var maker: [String]? {
      switch self {
      case .ext4: ["mkfs.ext4", "-q", "-F"]
      case .xfs: ["mkfs.xfs", "-q", "-f"]
      case .btrfs: ["mkfs.btrfs", "-q", "-f"]
      default: nil
      }
    }

    /// A shell that prints no message of its own when its command is killed.
    private static let guardian = "exec 3>&2 2>/dev/null; \"$@\" 2>&3 3>&-; exit $?"

    /// Returns the command that runs a program in a namespace of its own.
    func apart(_ program: String, _ arguments: [String]) -> (String, [String]) {
      switch self {
      // Signals from inside a namespace do not end its first process, so a shell comes first. Under
      // load, libdispatch looks for its threads in `/proc`, and traps if they are not there: the
      // namespace needs its own.
      case .pids:
        (
          "unshare",
          ["--pid", "--mount-proc", "--fork", "--kill-child", "sh", "-c", Self.guardian, "sh"]
            + [program] + arguments
        )
      case .users: ("unshare", ["--user", "--map-root-user", program] + arguments)
      default: (program, arguments)
      }
    }
  }

  let kind: Kind
  /// The directory in which runs make their directories.
  let path: String
  private let folder: String
  private var isMounted = false

  /// Makes a file system and mounts it.
  ///
  /// - Parameter folder: an existing directory, for the image and the mount point.
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
      // The holes in the image take no space.
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

  /// Runs a file system's maker without its output for people.
  private static func make(_ words: [String]) throws {
    try must("sh", ["-c", "exec \"$@\" >/dev/null 2>&1", "sh"] + words)
  }

  struct Failed: Error, CustomStringConvertible {
    let description: String
  }

  /// Copies a directory out of the file system, to keep the directory.
  func copy(_ directory: String, to place: String) throws {
    try Self.must("cp", ["-a", "--", directory, place])
  }

  // MARK: Namespaces of the program's own

  private static let mark = "WORMHOLE_STRESS_MACHINES"

  /// Whether this process is inside the namespaces.
  static var isInside: Bool { Processes.environment(mark) != nil }

  /// Runs this program again, in namespaces of its own; returns the exit code.
  ///
  /// - Throws: ``Failed`` if the namespaces cannot be made.
  static func runInside() throws -> Int32 {
    guard Processes.effectiveUser == 0 else {
      throw Failed(description: "only root mounts file systems")
    }
    let wall = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    try must("unshare", wall + ["true"])
    try must("setpriv", ["--pdeathsig", "KILL", "true"])
    let program = try Processes.ownProgram()
    let arguments = Processes.arguments.map { String(cString: $0) }
    // The end of this process ends the inner process, and the namespaces with it.
    let child = try Child.spawn(
      "setpriv", ["--pdeathsig", "KILL", "unshare"] + wall + [program] + arguments,
      environment: Processes.environment(setting: ["\(mark)=1"]))
    return try child.wait().code
  }
}
