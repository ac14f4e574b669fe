import AppGroups
import Foundation
import MMWormhole
import TestSupport
import TestTraits
import Testing
import WormholeTesting

/// Code of a developer who begins today, compiled in Swift 6 mode.
@Suite struct SwiftSixTests {
  private let group: String

  init() throws {
    try GroupsRoot.use()
    group = "group.test.\(UUID().uuidString)"
  }

  @Test(.blocking) func settingsAreShared() throws {
    let settings = Settings(group: group)
    #expect(settings.volume == 5)
    settings.volume = 7
    settings.name = "Ada"
    settings.favourites = [3, 1]
    try settings.save([Movie(id: 1, title: "M", hour: 22)])
    let again = Settings(group: group)
    #expect(again.volume == 7)
    #expect(again.name == "Ada")
    #expect(again.favourites == [1, 3])
    #expect(try again.movies() == [Movie(id: 1, title: "M", hour: 22)])
    // The value is the group's, although the file that sets it imports Foundation alone.
    #expect(UserDefaults(suiteName: group)?.integer(forKey: "volume") == 7)
  }

  @MainActor @Test func theTimetableIsSavedAndToldOf() async throws {
    let timetable = Timetable(group: group)
    timetable.load()
    #expect(timetable.error == "no timetable")
    let heard = Heard<Int>()
    try timetable.follow { heard.add(1) }
    try Timetable(group: group).save([Movie(id: 1, title: "M", hour: 22)])
    try await WormholeTesting.eventually("the notification", within: patience) { heard.count >= 1 }
    timetable.load()
    #expect(timetable.movies.map(\.title) == ["M"])
    timetable.unfollow()
    let desk = Desk(titles: ["Sunrise"])
    let answer = await withCheckedContinuation { continuation in
      desk.application(.shared, handleWatchKitExtensionRequest: ["request": "timetable"]) {
        continuation.resume(returning: $0?["titles"] as? [String] ?? [])
      }
    }
    #expect(answer == ["Sunrise"])
    let list = MovieList()
    list.movies = timetable.movies
    #expect(list.count == 1)
  }

  @Test func pressesAreHeard() async throws {
    let remote = Remote(group: group)
    let player = Player(group: group)
    let heard = Heard<Int>()
    await player.start { heard.add(1) }
    remote.press(.up)
    try await WormholeTesting.eventually("the press", within: patience) { heard.count == 1 }
    remote.turn(to: 0.5)
    try await WormholeTesting.eventually("the volume", within: patience) { heard.count == 2 }
    #expect(await player.presses == [.up])
    #expect(await player.volume == 0.5)
    #expect(await player.latest == .up)
    await player.stop()
    remote.off()
    #expect(await player.latest == nil)
  }

  @MainActor @Test func theScreenReadsWhatIsThere() async throws {
    let wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: nil)
    let screen = RemoteScreen(wormhole)
    screen.show()
    screen.readNow()
    #expect(screen.line == "nothing")
    wormhole.passMessageObject("hello" as NSString, identifier: "line")
    screen.readNow()
    #expect(screen.line == "hello")
    wormhole.stopListeningForMessage(withIdentifier: "line")
  }
}
