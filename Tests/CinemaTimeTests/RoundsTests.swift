import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeCinemaTime
import WormholePropertyLists
import WormholeSyscalls

/// Both apps, in processes of their own, at once.
@Suite(.serialized, .blocking, .notSanitized("the apps run in processes of their own"))
struct RoundsTests {
  private let seed = TestRun.seed

  /// A thousand in a long run.
  private let rounds = TestRun.isLong ? 1000 : 60

  /// In each round both apps buy different films in the same instant, and then return each other's
  /// films.
  ///
  /// The union is in the books every time, and both apps show it soon after the later purchase was
  /// confirmed.
  @Test func againAndAgainBothBuyAtOnceAndNothingIsLost() throws {
    let cinema = try Cinema()
    let (phone, watch) = (try cinema.app(.phone), try cinema.app(.watch))
    try phone.shows(tickets: [])
    try watch.shows(tickets: [])
    var random = SeededRandom(seed: seed)
    let pace = try Pace(cinema)
    var delays: [Duration] = []
    for round in 0..<rounds {
      let movies = Movie.all.map(\.id).shuffled(using: &random).prefix(2)
      let (first, second) = (movies[0], movies[1])
      let counts = (phone.count, watch.count)
      try phone.type("buy \(first)")
      try watch.type("buy \(second)")
      let confirmed = max(
        try phone.did(after: counts.0, "bought", first).time,
        try watch.did(after: counts.1, "bought", second).time)
      let shown = max(
        try phone.shows(after: counts.0, tickets: [first, second]).time,
        try watch.shows(after: counts.1, tickets: [first, second]).time)
      delays.append(max(.zero, shown - confirmed))
      let books = try cinema.books
      #expect(Set(books.tickets.map(\.movie)) == [first, second], "round \(round), seed \(seed)")
      #expect(books.addUp)
      let after = (phone.count, watch.count)
      try phone.type("return \(second)")
      try watch.type("return \(first)")
      try phone.shows(after: after.0, tickets: [])
      try watch.shows(after: after.1, tickets: [])
      // In each round, so that both times are of the same moments.
      for _ in 0..<3 { try pace.measure() }
    }
    let floor = pace.median
    delays.sort()
    let median = delays[delays.count / 2]
    Attachment.record("median \(median), a put and its watcher \(floor)", named: "delays")
    #expect(median <= floor * 20, "a put and its watcher took \(floor), seed \(seed)")
  }
}

/// The time of a put until the watcher of another instance is called.
private final class Pace {
  private let heard = Monitor(0)
  private let channel: Channel<Int>
  private let other: SharedContainer
  private let watching: Subscription
  private var times: [Duration] = []

  init(_ cinema: Cinema) throws {
    other = try SharedContainer(directory: cinema.path)
    watching = try other.channel("pace", of: Int.self).watch { [heard] snapshot in
      heard.signal { $0 = snapshot.value ?? 0 }
    }
    channel = cinema.container.channel("pace", of: Int.self)
  }

  deinit { watching.stop() }

  func measure() throws {
    let number = times.count + 1
    let begin = Instant.now
    try channel.put(number, durability: .power)
    _ = heard.wait(until: .now + patience) { $0 == number ? true : nil }
    times.append(Instant.now - begin)
  }

  var median: Duration { times.sorted()[times.count / 2] }
}
