import Foundation
import Wormhole
import WormholeCinemaTime
import WormholeCommandLine
import WormholeContainerStorage
import WormholeSyscalls

extension Verb {
  static let run = Verb(
    "run", "run the app of one side", [], [.idle, .sample],
    [
      "Joins as the phone or the watch and draws the films and tickets, again after each change "
        + "by either side. Commands to type are 'buy ID', 'return ID' and 'quit'. The phone's "
        + "app makes the images of tickets; the watch's app requests the images and stores them.",
      "If standard output is not a terminal, writes a line for each change: the numbers of the "
        + "films with tickets, and the numbers of the films with images. With --json, writes one "
        + "object per line, and one for each typed command.",
      "With --sample, works as the published sample does: each side has a list of its own and "
        + "sends the whole list to the other side with each change, through WatchConnectivity. "
        + "This loses tickets and images; the article 'The ticket office' explains the reasons.",
      "The other verbs work whether the app runs or not. Each side has one app: exits with 69 if "
        + "the app runs already.",
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
    // `dispatchMain()` is unsuitable: its main thread would take the signals for which another
    // thread waits.
    while true { RunLoop.main.run() }
  }
}

extension Option {
  static let sample = Option(
    "sample", nil, "work as the published sample does, including its losses")
  static let idle = Option("idle", .any("D"), "time without activity after which the app ends")
}
