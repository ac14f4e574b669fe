import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Bytes that are put are read back unchanged.
@Suite(.blocking, .notSanitized("about what a command prints")) struct BytesTests {
  @Test(arguments: [
    ("nothing", ""), ("a word", "word"), ("a line", "line\n"), ("lines", "one\n\ntwo\n\n"),
    ("a line feed", "\n"), ("emoji", "👩‍🚀 → 🌍\u{0}!"), ("quotes", "\"'\\$HOME`true`"),
    ("JSON", #"{"a": 1}"#), ("a dash", "-"),
  ])
  func textFromAPipeIsUnchanged(_ name: String, _ text: String) throws {
    let stage = try Stage()
    try stage.directory.write(text, to: "in")
    try compare(stage, "wormhole put it - --raw <in && wormhole get it --raw >out")
    try compare(
      stage,
      "wormhole put it --raw <in && wormhole get it --json | wormhole put other && "
        + "wormhole get it --raw >out")
  }

  /// Programs that wait for many events make such pipes, and a terminal is shared by programs.
  @Test func streamsThatDoNotWaitThemselvesAreWaitedFor() throws {
    guard Programs.installed("python3") != nil else {
      return skip("streams that do not wait themselves", because: "there is no python3")
    }
    let program = """
      import os, subprocess
      def pipe(end):
          ends = os.pipe()
          os.set_blocking(ends[end], False)
          return ends
      reading, writing = pipe(0)
      put = subprocess.Popen(["wormhole", "put", "it", "-"], stdin=reading)
      os.close(reading)
      try:
          with open(writing, "wb") as stream: stream.write(b"x" * 3000000)
      except BrokenPipeError: pass
      print(put.wait())
      reading, writing = pipe(1)
      get = subprocess.Popen(["wormhole", "get", "it", "--raw"], stdout=writing)
      os.close(writing)
      with open(reading, "rb") as stream: print(len(stream.read()))
      print(get.wait())
      """
    let stage = try Stage()
    let outcome = try stage.run(
      "exec python3 -c \"$PROGRAM\"", environment: ["PROGRAM=\(program)"])
    #expect(outcome.errors == "")
    #expect(outcome.output == "0\n3000000\n0\n")
  }

  @Test func bytesThatAreNoTextAreUnchanged() throws {
    let stage = try Stage()
    let file = try stage.directory.descriptor.open("in", [.writeOnly, .create], mode: 0o600)
    try file.write((0..<1024).map { UInt8(truncatingIfNeeded: $0 &* 7) })
    try compare(stage, "wormhole put it - <in && wormhole get it >out")
    try compare(stage, "wormhole put it - --type data <in && wormhole get it --raw >out")
    try compare(stage, "wormhole update it --exec cat && wormhole get it >out")
    try compare(
      stage, "wormhole get it --plist | wormhole put b --type plist && wormhole get b >out")
  }

  @Test func tenMegabytesAreUnchanged() throws {
    let stage = try Stage()
    var random = SeededRandom(seed: 10)
    let chunk = random.bytes(65_536)
    let file = try stage.directory.descriptor.open("in", [.writeOnly, .create], mode: 0o600)
    for _ in 0..<160 { try file.write(chunk) }
    try compare(stage, "wormhole put it - <in && wormhole get it >out")
    try compare(stage, "wormhole update it --exec cat && wormhole get it >out")
    // A program that reads no input and writes no output.
    try stage.directory.write("", to: "in")
    try compare(stage, "wormhole update it --exec true && wormhole get it >out")
  }

  @Test func moreThanAValueCanBeIsRefused() throws {
    let stage = try Stage()
    let outcome = try stage.run(
      "wormhole put it small && head -c 70000000 /dev/zero | wormhole put it -")
    #expect(outcome.status == .exited(65))
    #expect(
      outcome.errors
        == "wormhole: cannot read 'standard input': the input has more than 67108864 bytes\n")
    #expect(try stage.run("wormhole get it").output == "small\n")
    // The input itself may have that many bytes, but its value takes a few more.
    let full = try stage.run("head -c 67108864 /dev/zero | wormhole put it - --type data")
    #expect(full.status == .exited(65))
    #expect(full.errors.hasPrefix("wormhole: cannot put value into channel 'it': "))
    let update = try stage.run(
      "wormhole update it --exec 'head -c 70000000 /dev/zero; echo $? >status'")
    #expect(update.status == .exited(65))
    #expect(
      update.errors
        == "wormhole: cannot update channel 'it': CMD wrote more than 67108864 bytes\n")
    // The rest was not read: the program was ended by SIGPIPE.
    #expect(try stage.run("cat status").output == "141\n")
    #expect(try stage.run("wormhole get it").output == "small\n")
  }

  @Test func whatTheEnvironmentHoldsReachesProgramsUnchanged() throws {
    let stage = try Stage()
    let file = try stage.directory.descriptor.open("in", [.writeOnly, .create], mode: 0o600)
    try file.write([0xff, 0x61, 0xc3, 0x28, 0xfe])
    try compare(
      stage,
      "wormhole put it x && export ODD=\"$(cat in)\" && "
        + "wormhole update it --type data --exec 'printf %s \"$ODD\"' && wormhole get it --raw >out"
    )
  }

  @Test func aContainerIsNamedByBytesThatAreText() throws {
    let stage = try Stage()
    let outcome = try stage.run("WORMHOLE_CONTAINER=\"$(printf 'x\\377')\" wormhole put it 1")
    #expect(outcome.status == .exited(64))
    #expect(outcome.errors.contains("WORMHOLE_CONTAINER is not UTF-8"))
    let group = try stage.run(
      "WORMHOLE_ROOT=\"/$(printf 'x\\377')\" WORMHOLE_CONTAINER= wormhole put it 1 --group a")
    #expect(group.errors.contains("WORMHOLE_ROOT is not UTF-8"))
    #expect(try stage.directory.descriptor.names() == [])
  }

  @Test(arguments: ["link", "link/", "link//", "link/.", "link/./"])
  func aLinkToAContainerIsRefusedHoweverItIsWritten(path: String) throws {
    let stage = try Stage()
    let outcome = try stage.run("wormhole put it 1 && ln -s hole link && ls link/channels")
    #expect(outcome.output == "it\n")
    let get = try stage.run("WORMHOLE_CONTAINER= wormhole get it --container \(path)")
    #expect(get.status != .exited(0))
    #expect(get.errors.contains("symbolic link"))
    let own = try stage.run("WORMHOLE_CONTAINER= wormhole get it --container hole/")
    #expect(own.output == "1\n")
  }

  private func compare(_ stage: Stage, _ command: String) throws {
    let outcome = try stage.run(command + " && cmp in out")
    #expect(outcome.status == .exited(0), "\(command): \(outcome.errors)\(outcome.output)")
    #expect(outcome.errors == "")
  }
}
