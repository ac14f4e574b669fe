import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePairings

/// The changes of a pairing: the watch that each concerns, and the numbers that stay.
@Suite(.blocking) struct PairingChangeTests {
  private let folder: TemporaryDirectory
  private let pairing: Pairing

  init() throws {
    folder = try TemporaryDirectory()
    pairing = try Pairing(directory: folder.path + "/container")
  }

  private func watch(_ name: String = "watch") throws -> Pairing.Watch {
    try #require(try pairing.state.watches[name])
  }

  @Test func aChangeConcernsTheNamedWatchOrElseTheActiveOne() throws {
    try pairing.pair("other")
    try pairing.setComplication(enabled: true, watch: "watch")
    try pairing.setInRange(false, watch: "watch")
    #expect(try watch().isComplicationEnabled && !watch().isInRange)
    #expect(try !watch("other").isComplicationEnabled && watch("other").isInRange)
    // Only the complication of the active watch has a budget.
    #expect(try pairing.state.active == "other")
    #expect(try pairing.state.complicationTransfersLeft(day: 1, limit: 5) == 0)
    try pairing.setComplication(enabled: true)
    try pairing.setComplication(enabled: false, watch: "watch")
    #expect(try watch("other").isComplicationEnabled && !watch().isComplicationEnabled)
    #expect(try pairing.state.complicationTransfersLeft(day: 1, limit: 5) == 5)
    try pairing.uninstall(.watch, watch: "watch")
    #expect(try !watch().isAppInstalled && watch("other").isAppInstalled)
  }

  @Test func anUninstalledAppTakesItsComplicationAndItsDirectoryNumberWithIt() throws {
    try pairing.setComplication(enabled: true)
    let first = try watch().directory
    // The app is there already, so nothing changes.
    try pairing.install(.watch)
    #expect(try watch().directory == first && watch().isComplicationEnabled)
    try pairing.uninstall(.watch)
    #expect(try !watch().isAppInstalled && !watch().isComplicationEnabled)
    #expect(try pairing.directory(of: "watch") == nil)
    try pairing.install(.watch)
    #expect(try watch().isAppInstalled && !watch().isComplicationEnabled)
    #expect(try watch().directory != first)
    // The phone's app has neither.
    let second = try watch().directory
    try pairing.uninstall(.phone)
    #expect(try !pairing.state.isPhoneAppInstalled && watch().isAppInstalled)
    try pairing.install(.phone)
    #expect(try pairing.state.isPhoneAppInstalled && watch().directory == second)
  }

  @Test func aWatchThatIsNotPairedIsNamedInTheError() throws {
    try pairing.setInRange(true)
    let before = try pairing.versioned
    let changes: [(String, (String?) throws -> Void)] = [
      ("set the complication of", { try pairing.setComplication(enabled: true, watch: $0) }),
      ("set the range of", { try pairing.setInRange(false, watch: $0) }),
      ("install the app on", { try pairing.install(.watch, watch: $0) }),
      ("uninstall the app from", { try pairing.uninstall(.watch, watch: $0) }),
    ]
    func check(_ name: String?, _ shown: String) {
      for (operation, change) in changes {
        let error = #expect(throws: WormholeError.self) { try change(name) }
        #expect(error?.code == .notFound)
        #expect(
          error?.description
            == "cannot \(operation) '\(shown)': no such watch is paired; "
            + "pair the watch with 'wormhole watchconnectivity pair'")
      }
    }
    check("other", "other")
    #expect(try pairing.versioned.version == before.version)
    #expect(try pairing.state == before.state)
    try pairing.unpair()
    check(nil, "watch")
    #expect(try pairing.state.watches.isEmpty && pairing.state.active == nil)
    // The phone's app needs no watch.
    try pairing.uninstall(.phone)
    #expect(try !pairing.state.isPhoneAppInstalled)
  }

  @Test func afterTheActiveWatchTheFirstOfTheOthersIsActive() throws {
    for name in ["c", "a", "b"] { try pairing.pair(name) }
    #expect(try pairing.state.active == "b")
    try pairing.unpair("c")
    #expect(try pairing.state.active == "b")
    let number = try watch("a").directory
    try pairing.unpair()
    #expect(try pairing.state.active == "a")
    // A watch that is paired already keeps its directory.
    try pairing.pair("watch")
    try pairing.pair("a")
    #expect(try watch("a").directory == number)
    try pairing.unpair("a")
    #expect(try pairing.state.active == "watch")
  }

  @Test func theBudgetBelongsToOneDay() throws {
    try pairing.setComplication(enabled: true)
    let taken = try (1...3).map { _ in try pairing.takeComplicationTransfer(day: 7, limit: 2) }
    #expect(taken == [7, 7, nil])
    #expect(try pairing.state.budgetDay == 7 && pairing.state.budgetUsed == 2)
    #expect(try pairing.takeComplicationTransfer(day: 8, limit: 2) == 8)
    #expect(try pairing.state.budgetDay == 8 && pairing.state.budgetUsed == 1)
    try pairing.setComplication(enabled: false)
    #expect(try pairing.takeComplicationTransfer(day: 8, limit: 2) == nil)
    #expect(try pairing.state.budgetUsed == 1)
  }

  /// A process has read the clock just before midnight, and another one just after.
  @Test func aLateTransferOfThePreviousDayBeginsNoBudget() throws {
    try pairing.setComplication(enabled: true)
    #expect(try pairing.takeComplicationTransfer(day: 8, limit: 2) == 8)
    let late = try #require(try pairing.takeComplicationTransfer(day: 7, limit: 2))
    #expect(late == 8)
    #expect(try pairing.state.budgetDay == 8)
    #expect(try pairing.state.budgetUsed == 2)
    #expect(try pairing.takeComplicationTransfer(day: 8, limit: 2) == nil)
    #expect(try pairing.takeComplicationTransfer(day: 7, limit: 2) == nil)
    // A transfer that fails goes back to the budget from which it was taken.
    try pairing.returnComplicationTransfer(day: late)
    #expect(try pairing.state.budgetUsed == 1)
  }

  @Test func aReturnedTransferCanBeTakenAgainOnItsDay() throws {
    try pairing.setComplication(enabled: true)
    #expect(try pairing.takeComplicationTransfer(day: 7, limit: 1) == 7)
    try pairing.returnComplicationTransfer(day: 7)
    #expect(try pairing.takeComplicationTransfer(day: 7, limit: 1) == 7)
    // The next day has a budget of its own.
    #expect(try pairing.takeComplicationTransfer(day: 8, limit: 1) == 8)
    try pairing.returnComplicationTransfer(day: 7)
    #expect(try pairing.takeComplicationTransfer(day: 8, limit: 1) == nil)
    // More was never taken.
    for _ in 1...2 { try pairing.returnComplicationTransfer(day: 8) }
    #expect(try pairing.state.budgetUsed == 0)
  }
}
