import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholeSyscalls

extension Verb {
  static let coordinate = Verb(
    "coordinate", "run a command with coordinated access to files",
    [
      Operand("KIND", .one, .words(CoordinatedKind.allCases.map(\.rawValue))),
      Operand("PATH", .many, .files), Operand("CMD", .command),
    ], [.timeout, .conflictStatus, .takeOver],
    [
      "KIND is read or write. Waits until no other program has a conflicting access, runs CMD "
        + "with its arguments, and ends with the status of CMD, or with 128 plus the number of "
        + "the signal that ended CMD. During a write, no other program gets access to the same "
        + "path, to a folder above it, or to anything in it; reads share. Waits at most 30 "
        + "seconds unless --timeout is given. Exits with 75 if the time limit passes, or with "
        + "the status in --conflict-exit-code; with 127 if the program was not found, with 126 "
        + "if the program cannot be executed, and with 125 if CMD was not run for another reason.",
      "A program that has ended conflicts with nothing. If a conflicting program is suspended, "
        + "this command fails at once and names it. With --take-over, this command continues "
        + "after the conflicting program was suspended for D, and waits this much longer "
        + "than 30 seconds. When the suspended program resumes, both may use the files. If "
        + "another program takes over from CMD, a message reports it after CMD has ended.",
      "A container need not be named: the queue for files in the directory of a group is in the "
        + "group's container, and the queue for all other files is in a container of the user. A "
        + "program that does not coordinate is not kept away. If this command is killed by "
        + "SIGKILL, CMD continues to run, and no other program waits for CMD.",
      "\(insideVariable) lists the accesses in which CMD runs. A nested access that conflicts "
        + "with this access is refused at once, with 125, because it would wait for itself. A "
        + "nested read inside a read is granted, as long as this command runs. A cycle of "
        + "several programs, each of which waits for the next, is refused as well.",
    ],
    [
      Example(
        "wormhole coordinate read notes -- tar cf notes.tar notes",
        "archive the files while no program changes them"),
      Example("wormhole coordinate write a b --timeout 5 -- mv a b", "both files, or neither"),
      Example(
        "wormhole coordinate write log --take-over 60 -- gzip log",
        "take over from a program suspended for 60 seconds"),
    ]
  ) { invocation in
    try invocation.runCommand { status in
      let kind: CoordinatedKind = try invocation.word(separator: " or ") {
        "coordinate a '\($0)': KIND is"
      }
      let timeout = try invocation.seconds(.timeout)
      let takeOver = try invocation.seconds(.takeOver)
      let intents = invocation.operands.dropFirst().map(kind.intent)
      try InheritedAccesses.within(Processes.environment(insideVariable) ?? "") {
        try Coordinator().access(intents, within: timeout, takeOverAfter: takeOver) { _ in
          let settings = ["\(insideVariable)=\(InheritedAccesses.text)"]
          status = try Programs.run(invocation.command, settings).code
        }
      }
    }
  }
}

private let insideVariable = "WORMHOLE_INSIDE"

private enum CoordinatedKind: String, CaseIterable {
  case read, write

  func intent(_ path: String) -> Coordinator.Intent {
    switch self {
    case .read: .reading(path)
    case .write: .writing(path)
    }
  }
}

extension Option {
  static let takeOver = Option(
    "take-over", .any("D"),
    "suspension after which to take over from a conflicting program")
}
