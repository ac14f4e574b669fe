import AppGroups
import Foundation
import MMWormhole
import TestSupport
import TestTraits
import Testing

/// Code as the slides and MMWormhole's examples have it, compiled in Swift 5 mode.
@Suite(.blocking) struct SwiftFiveTests {
  private let group: String

  init() throws {
    try GroupsRoot.use()
    group = "group.test.\(UUID().uuidString)"
  }

  @Test func settingsAreShared() throws {
    let settings = CinemaSettings(group: group)
    settings.favourite = "Metropolis"
    settings.rows = 9
    settings.ratings = ["Metropolis": 5]
    settings.visited = ["a", "b"]
    settings.movies = [Movie(id: 1, title: "Sunrise", hour: 20)]
    settings.lastVisit = Date(timeIntervalSince1970: 10)
    let again = CinemaSettings(group: group)
    #expect(again.favourite == "Metropolis")
    #expect(again.rows == 9)
    #expect(again.ratings == ["Metropolis": 5])
    #expect(again.visited == ["a", "b"])
    #expect(again.movies == [Movie(id: 1, title: "Sunrise", hour: 20)])
    #expect(again.lastVisit == Date(timeIntervalSince1970: 10))
    // The value is the group's, although the file that sets it imports Foundation alone.
    #expect(UserDefaults(suiteName: group)?.integer(forKey: "rows") == 9)
    settings.registerDefaults()
    settings.reset()
    #expect(again.favourite == nil)
    #expect(again.rows == 12)
    #expect(again.hasSound)
  }

  @Test func theTimetableIsSavedToldOfAndAskedFor() throws {
    let store = TimetableStore(group: group)
    #expect(store.load() == nil)
    let controller = InterfaceController(store: TimetableStore(group: group))
    let heard = Heard<Int>()
    let observation = try DarwinNotification(timetableChanged).observe(on: .global()) {
      heard.add(1)
    }
    try store.save([Movie(id: 1, title: "Sunrise", hour: 20), Movie(id: 2, title: "M", hour: 22)])
    try heard.wait("the notification") { $0.count >= 1 }
    observation.cancel()
    controller.showTimetable()
    #expect(controller.shown == ["M at 22", "Sunrise at 20"])
    #expect((store.loadDictionary()?["movies"] as? [[String: Any]])?.count == 2)
    controller.willActivate()
    controller.didDeactivate()
    let delegate = AppDelegate()
    let replies = Heard<Int>()
    delegate.application(.shared, handleWatchKitExtensionRequest: ["request": "timetable"]) {
      replies.add(($0?["titles"] as? [String])?.count ?? 0)
    }
    delegate.application(.shared, handleWatchKitExtensionRequest: nil) {
      replies.add($0?.count ?? 0)
    }
    #expect(replies.all == [2, 0])
  }

  @Test func buttonsAreSeenAndHeard() throws {
    let buttons = ButtonController(group: group)
    let numbers = NumberController(group: group)
    #expect(numbers.awake() == "no button")
    let heard = Heard<String>()
    numbers.onChange = { heard.add($0) }
    numbers.listen(on: DispatchQueue(label: "numbers"))
    buttons.didPressButton(3)
    try heard.wait("the button") { $0.contains("button 3") }
    #expect(numbers.awake() == "3")
    buttons.didSwitch()
    buttons.didType("hello")
    buttons.didSelect([1, 2])
    buttons.didDraw([[1, 2], [3, 4]])
    buttons.didTakePhoto(Data([1, 2, 3]))
    try heard.wait("the rest") {
      Set(["on", "hello", "rows 1 2", "2 points", "3 bytes"]).isSubset(of: Set($0))
    }
    numbers.stop()
    buttons.clear()
    #expect(numbers.awake() == "no button")
  }

  @Test func objectsWithCodingOfTheirOwnArePassed() throws {
    let wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: nil)
    wormhole.passMessageObject(Ticket(film: "M", seats: [1, 2]), identifier: "ticket")
    let ticket = wormhole.message(withIdentifier: "ticket") as? Ticket
    #expect(ticket?.film == "M")
    #expect(ticket?.seats == [1, 2])
    wormhole.wormholeMessenger = MemoryMessenger()
    wormhole.passMessageObject("mine" as NSString, identifier: "note")
    #expect(wormhole.message(withIdentifier: "note") as? String == "mine")
    wormhole.clearAllMessageContents()
    #expect(wormhole.message(withIdentifier: "note") == nil)
  }
}
