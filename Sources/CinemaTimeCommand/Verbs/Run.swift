import CinemaTime
import CommandLine
import Foundation
import SharedContainer
import Syscalls
import Wormhole

extension Verb {
  static let run = Verb(
    "run", "be the app of one side", [], [.idle, .sample],
    [
      "Joins as the phone or the watch and draws what there is, anew with each change, whichever "
        + "side has made it. What is typed is done: 'buy ID', 'return ID', 'quit'. The phone's app "
        + "makes the images of tickets; the watch's asks for them and keeps them.",
      "Where standard output is no terminal it writes a line for each change: the numbers of the "
        + "films that there are tickets for, and those that there are images of. With --json, one "
        + "object a line, and one for each thing that was typed.",
      "With --sample it works as the published sample does: each side has a list of its own and "
        + "sends all of it to the other with each change, through WatchConnectivity. It loses "
        + "tickets and images; the article 'The ticket office' says why.",
      "The other verbs work whether it runs or not. There can be one for each side: exits with 69 "
        + "if it runs already.",
    ],
    [
      Example("cinematime --as phone --container office run", "the phone"),
      Example("cinematime --as watch --container office run", "the watch, in another terminal"),
    ]
  ) { invocation in
    let screen = Screen(invocation.output)
    try Interruption.prepare { screen.close() }
    let app = try MainActor.assumeIsolated { try RunningApp(invocation, screen) }
    _ = Unmanaged.passRetained(app)
    // Not `dispatchMain()`: its main thread takes the signals that are waited for elsewhere.
    while true { RunLoop.main.run() }
  }
}

extension Option {
  static let sample = Option(
    "sample", nil, "work as the published sample does, and lose what it loses")
  static let idle = Option("idle", .any("S"), "end when there was nothing to do for S seconds")
}
