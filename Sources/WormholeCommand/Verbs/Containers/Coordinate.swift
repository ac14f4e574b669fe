import CommandLine
import SharedContainer
import Syscalls
import Wormhole

extension Verb {
  static let coordinate = Verb(
    "coordinate", "run a command while nobody who coordinates is in the way at some files",
    [
      Operand("KIND", .one, .words(CoordinatedKind.allCases.map(\.rawValue))),
      Operand("PATH", .many, .files), Operand("CMD", .command),
    ], [.timeout, .takeOver],
    [
      "KIND is read or write. Waits until no other program that coordinates is in the way, runs "
        + "CMD with its arguments, and passes on the status of CMD, or 128 and the number of the "
        + "signal that ended it. While one writes, nobody else reads or writes there, nor in a "
        + "folder above it, nor in what lies in it; readers share. Waits for 30 seconds if "
        + "--timeout does not say otherwise. Exits with 1 if time was up, with 127 if there is no "
        + "such program, with 126 if it cannot be run, and with 125 if CMD was not run for "
        + "another reason.",
      "A program that has ended is in nobody's way. If one is stopped, whoever waits for it is "
        + "told at once who it is. With --take-over, it goes on all the same once that one has "
        + "stood still for so long, for which it waits beyond the 30 seconds: when that one wakes, "
        + "both may use the files. If that happens to CMD, a message says so when it has ended.",
      "No container is named: files in the directory of a group are ordered by that group's, and "
        + "all others by one that the user has for it. Whoever does not coordinate is not kept "
        + "away. If the command itself is killed by SIGKILL, CMD runs on, and nobody waits for it.",
      "CMD finds in \(insideVariable) which accesses it runs in. So another one inside of CMD that "
        + "this one is in the way of is refused at once, with 125, as it would wait for itself; "
        + "what is read in what is read gets in, for as long as this one runs; and a ring of "
        + "several, each of which has what the next one wants, is refused as well.",
    ],
    [
      Example(
        "wormhole coordinate read notes -- tar cf notes.tar notes", "while nobody changes them"),
      Example("wormhole coordinate write a b --timeout 5 -- mv a b", "both, or neither"),
      Example("wormhole coordinate write log --take-over 60 -- gzip log", "past the stopped"),
    ]
  ) { invocation in
    try Interruption.prepare()
    var status: Int32?
    do {
      guard let kind = CoordinatedKind(rawValue: invocation.operands[0]) else {
        throw Failure.usage(
          "cannot coordinate a '\(invocation.operands[0])': it is read or write")
      }
      let timeout = try invocation.seconds(.timeout)
      let takeOver = try invocation.seconds(.takeOver)
      let intents = invocation.operands.dropFirst().map(kind.intent)
      try InheritedAccesses.within(Processes.environment(insideVariable) ?? "") {
        try Wormhole.Coordinator().access(intents, within: timeout, takeOverAfter: takeOver) { _ in
          let settings = ["\(insideVariable)=\(InheritedAccesses.text)"]
          status = try Programs.run(invocation.command, settings).code
        }
      }
      return status ?? ExitCode.neverRan.rawValue
    } catch {
      guard let status else { throw Failure(neverRan: error) }
      invocation.output.tell(Failure(error))
      return status
    }
  }
}

private let insideVariable = "WORMHOLE_INSIDE"

private enum CoordinatedKind: String, CaseIterable {
  case read, write

  func intent(_ path: String) -> Wormhole.Coordinator.Intent {
    switch self {
    case .read: .reading(path)
    case .write: .writing(path)
    }
  }
}

extension Option {
  static let takeOver = Option(
    "take-over", .any("S"), "go past one that is in the way and has stood still for S seconds")
}
