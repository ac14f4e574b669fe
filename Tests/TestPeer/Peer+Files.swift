import Syscalls
import TestSupport

/// Jobs that make a few calls on files and say how far they came.
extension Peer {
  /// `touch <directory> <name>`: makes an empty file.
  static let touch = Job("touch") { arguments in
    let directory = try Descriptor.open(path: arguments[0], [.readOnly, .directory])
    _ = try directory.open(arguments[1], [.writeOnly, .create], mode: 0o600)
    try StandardStream.output.write("done\n")
  }

  /// `replace <directory> <name> <text>`: writes a file beside it, syncs it and renames it over.
  static let replace = Job("replace") { arguments in
    let directory = try Descriptor.open(path: arguments[0], [.readOnly, .directory])
    let staged = arguments[1] + ".new"
    let file = try directory.open(staged, [.writeOnly, .create, .exclusive], mode: 0o600)
    try file.write(arguments[2])
    try file.sync()
    try directory.rename(staged, to: directory, arguments[1])
    try StandardStream.output.write("done\n")
  }

  /// `list <directory>`: the names in it, a line each, in order.
  static let list = Job("list") { arguments in
    let directory = try Descriptor.open(path: arguments[0], [.readOnly, .directory])
    for name in try directory.names().sorted() { try StandardStream.output.write(name + "\n") }
  }

  /// `descriptors`: the numbers of the descriptors it was born with.
  static let descriptors = Job("descriptors") { _ in
    let directory = try Descriptor.open(path: "/proc/self/fd", [.readOnly, .directory])
    let own = String(directory.rawValue)
    let names = try directory.names().filter { $0 != own }.sorted()
    try StandardStream.output.write(names.joined(separator: " ") + "\n")
  }

  /// `respawn <job> [<argument>…]`: starts the peer once more, for that job.
  static let respawn = Job("respawn") { arguments in
    let child = try Child.spawn(CommandLine.arguments[0], arguments)
    Processes.exit(try child.wait().code)
  }

  /// `bystander <directory> <name>`: makes a directory on a second thread; the first one waits.
  static let bystander = Job("bystander") { arguments in
    let path = arguments[0] + "/" + arguments[1]
    let thread = try Thread("second") {
      try? Descriptor.makeDirectory(path: path, mode: 0o700)
    }
    thread.join()
    try StandardStream.output.write("done\n")
  }
}
