import Foundation
import Wormhole
import WormholeCinemaTime
import WormholeCommandLine
import WormholeContainerStorage
import WormholeSyscalls

extension Verb {
  static let run = Verb(
    "run", "run the app of one side", [], [.idle, .feed, .sample],
    [
      "Joins as the phone or the watch and draws the films and tickets, again after each change "
        + "by either side. Commands to type are 'buy ID', 'return ID', 'show ID', 'help' and "
        + "'quit'; ID is also the film's place in the list, from 1 to 9. On a terminal, the arrows "
        + "select a film, and Enter shows the film with the code of its ticket. The phone's "
        + "app makes the images of tickets; the watch's app requests the images and stores them.",
      "If standard output is not a terminal, writes a line for each change: the numbers of the "
        + "films with tickets, and the numbers of the films with images. With --json, writes one "
        + "object per line, and one for each typed command.",
      "With --feed, writes an object for each change of anything that the side shows, with the "
        + "time in nanoseconds since the machine's start, and ends when nobody reads it any more; "
        + "'serve' and 'both' show each side so.",
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
    let screen = Screen(invocation.output, isFeed: invocation.has(.feed))
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
  static let feed = Option(
    "feed", nil, "write everything that the side shows, for a program that shows it")
  static let idle = Option("idle", .any("D"), "time without activity after which the app ends")
}
