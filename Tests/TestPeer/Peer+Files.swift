import TestSupport
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs that make a few calls on files and print how far they came.
extension Peer {
  static func touch(_ directory: String, _ name: String) throws {
    let directory = try Descriptor.open(path: directory, [.readOnly, .directory])
    _ = try directory.open(name, [.writeOnly, .create], mode: 0o600)
    try StandardStream.output.write("done\n")
  }

  static func replace(_ directory: String, _ name: String, _ text: String) throws {
    let directory = try Descriptor.open(path: directory, [.readOnly, .directory])
    let staged = name + ".new"
    let file = try directory.open(staged, [.writeOnly, .create, .exclusive], mode: 0o600)
    try file.write(text)
    try file.sync()
    try directory.rename(staged, to: directory, name)
    try StandardStream.output.write("done\n")
  }

  static func list(_ directory: String) throws {
    let directory = try Descriptor.open(path: directory, [.readOnly, .directory])
    for name in try directory.names().sorted() { try StandardStream.output.write(name + "\n") }
  }

  static func descriptors() throws {
    let directory = try Descriptor.open(path: "/proc/self/fd", [.readOnly, .directory])
    let own = String(directory.rawValue)
    let names = try directory.names().filter { $0 != own }.sorted()
    try StandardStream.output.write(names.joined(separator: " ") + "\n")
  }

  static func respawn(_ job: PeerJob) throws {
    let child = try Child.spawn(CommandLine.arguments[0], job.arguments)
    Processes.exit(try child.wait().code)
  }

  static func filterBare(_ directory: String) throws {
    // The copy has none of the numbers of the streams.
    let folder = try Descriptor.open(path: directory, [.readOnly, .directory]).duplicate()
    let words = ["-c", "cat; echo words >&2; echo end"]
    let (given, taken) = (try SharedPipe(), try SharedPipe())
    let piped = try Child.spawn("sh", words, input: given.reading, output: taken.writing)
    given.closeReading()
    taken.closeWriting()
    try given.feed(Array("data\n".utf8))
    let result = String(decoding: try taken.collect(limit: 1024), as: UTF8.self)
    _ = try piped.wait()
    // Opened in this order, each file has the number of the other stream if both are closed.
    let output = try folder.open("output", [.writeOnly, .create], mode: 0o600)
    let input = try folder.open("input", [.readOnly])
    let copied = try Child.spawn("sh", words, input: input.rawValue, output: output.rawValue)
    _ = try copied.wait()
    try folder.open("piped", [.writeOnly, .create], mode: 0o600).write(result)
  }

  static func bystander(_ directory: String, _ name: String) throws {
    let path = directory + "/" + name
    let thread = try Thread("second") {
      try? Descriptor.makeDirectory(path: path, mode: 0o700)
    }
    thread.join()
    try StandardStream.output.write("done\n")
  }

  static func openBeneath(_ directory: String, _ path: String) throws {
    let directory = try Descriptor.open(path: directory, [.readOnly, .directory])
    func failure() -> String {
      Errno.of { () throws(Errno) in _ = try directory.open(path, [.readOnly]) }?.name ?? "none"
    }
    var others: [OpenDirectory] = []
    while let other = try? directory.duplicate() { others.append(OpenDirectory(other)) }
    let first = failure()
    others = []
    try say("\(first) \(failure())")
  }
}
