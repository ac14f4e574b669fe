import Syscalls

/// What stands so far, shown with real files and a real process.
///
/// It tells nothing that changes from run to run, so that a test can compare it word for word.
enum Demo {
  static func run() throws(Failure) {
    do throws(Errno) {
      let parent = Processes.environment("TMPDIR") ?? "/tmp"
      let path = parent + "/wormhole-demo-\(Processes.current)-\(Clocks.sinceBoot)"
      try Descriptor.makeDirectory(path: path, mode: 0o700)
      let directory = try Descriptor.open(path: path, [.readOnly, .directory])
      defer { cleanUp(directory, path) }
      try exchange(in: directory)
      try stopAndKill()
    } catch {
      throw Failure(.software, "cannot show the demonstration: \(error)")
    }
    try Command.say("The directory is removed again.\n")
  }

  private static let files = ["value", "next"]

  private static func exchange(in directory: borrowing Descriptor) throws(Errno) {
    try write("first", to: "value", in: directory)
    let reader = try directory.open("value", [.readOnly])
    try write("second", to: "next", in: directory)
    try directory.rename("next", to: directory, "value", .exchanging)
    let new = try directory.open("value", [.readOnly])
    try StandardStream.output.write(
      """
      A file was replaced in one step, by exchange.
        who opens it now reads:      \(try text(of: new))
        who had it open still reads: \(try text(of: reader))

      """)
  }

  private static func stopAndKill() throws(Errno) {
    let child = try Child.spawn("sleep", ["60"])
    try child.send(.stop)
    let stopped = try child.waitUntilStopped()
    try child.send(.kill)
    let status = try child.wait()
    try StandardStream.output.write(
      """
      A process was stopped, then killed while it stood.
        it stopped:            \(stopped ? "yes" : "no")
        it ended by SIGKILL:   \(status == .signalled(9) ? "yes" : "no")

      """)
  }

  private static func write(
    _ text: String, to name: String, in directory: borrowing Descriptor
  ) throws(Errno) {
    let file = try directory.open(name, [.writeOnly, .create, .exclusive], mode: 0o600)
    let bytes = Array(text.utf8)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    defer { buffer.deallocate() }
    buffer.copyBytes(from: bytes)
    try file.writeFully(UnsafeRawBufferPointer(buffer))
  }

  private static func text(of file: borrowing Descriptor) throws(Errno) -> String {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 1)
    defer { buffer.deallocate() }
    let count = try file.readFully(into: buffer)
    return String(decoding: buffer[..<count], as: UTF8.self)
  }

  private static func cleanUp(_ directory: borrowing Descriptor, _ path: String) {
    // What a failure left unmade need not be removed.
    for file in files { try? directory.unlink(file) }
    try? Descriptor.removeDirectory(path: path)
  }
}
