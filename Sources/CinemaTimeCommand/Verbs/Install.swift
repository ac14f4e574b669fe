import CommandLine
import CinemaTime
import SharedContainer
import Syscalls
import Wormhole

extension Verb {
  static let install = Verb(
    "install", "have both apps started when they are needed", [], [],
    [
      "Says in the container how the phone's and the watch's app are started, which the watch does "
        + "when it needs an image and the phone's app does not run. An app that was started so "
        + "ends when it has had nothing to do for a minute.",
      "It is kept for this user alone; 'wormhole wake phone --show' prints it.",
    ],
    [Example("cinematime --container office install", "both")]
  ) { invocation in
    let hole = try invocation.open()
    let program: String
    do throws(Errno) {
      program = try Processes.ownProgram()
    } catch {
      throw WormholeError(error, "find", "cinematime")
    }
    for role in Role.allCases {
      try hole.registerStart(
        of: role.rawValue, program: program,
        arguments: ["--as", role.rawValue, "--for", invocation.customer, "run", "--idle", "60"])
    }
    invocation.output.explain("both apps are started when they are needed")
    return 0
  }
}
