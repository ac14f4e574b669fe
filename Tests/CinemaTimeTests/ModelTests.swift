import Observation
import TestSupport
import TestTraits
import Testing
import WormholeCinemaTime

/// The office, seen from a user interface.
@Suite struct ModelTests {
  @Test @MainActor
  func theModelShowsWhatEitherSideHasDone() async throws {
    let cinema = try Cinema()
    let office = try TicketOffice(cinema.container, as: .phone, for: "me")
    #expect(office.purchasable.count == 9)
    try office.purchase(34340)
    #expect(office.purchased.map(\.id) == [34340])
    #expect(office.isPurchased(Movie.all[4]))
    #expect(throws: Refusal.self) { try office.purchase(34340) }
    let other = try cinema.office(.watch)
    try other.sell(31413, to: "me")
    try other.takeBack(34340, from: "me")
    await comes { office.purchased.map(\.id) == [31413] }
    #expect(office.purchasable.flatMap(\.movies).count == 8)
    #expect(office.failure == nil)
  }

  /// Waits until the model meets the condition, by the notices that make a user interface redraw.
  @MainActor private func comes(_ condition: @MainActor () -> Bool) async {
    while true {
      let change = AsyncStream<Void>.makeStream()
      let isThere = withObservationTracking {
        condition()
      } onChange: {
        change.continuation.finish()
      }
      if isThere { return }
      for await _ in change.stream {}
    }
  }
}
