import TestSupport
import TestTraits
import Testing
import WormholeCinemaTime
import WormholeSyscalls

/// A purchase killed and stopped at its system calls: a seeded tenth of them; all in a long run.
///
/// `WORMHOLE_SEED` replays a run.
@Suite(.serialized, .blocking, .notSanitized("a process for each system call"))
struct DisturbedTests {
  private let seed = TestRun.seed
  private static let isLong = TestRun.isLong

  /// Books in which each side has already sold a ticket.
  private func opened() throws -> Cinema {
    let cinema = try Cinema()
    try cinema.office(.phone).sell(31413, to: "before")
    try cinema.office(.watch).sell(34340, to: "before")
    return cinema
  }

  private func points(_ role: Role, _ random: inout SeededRandom) throws -> [Int] {
    let cinema = try opened()
    let outcome = try cinema.start(role, "buy", "34340", trace: true).outcome()
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let count = try cinema.folder.read("trace").split(separator: "\n").count
    #expect(count > 20)
    let wanted = Self.isLong ? count : (count + 9) / 10
    print("swept \(wanted) of \(count) fault points")
    return Array((1...count).shuffled(using: &random).prefix(wanted))
  }

  /// Earlier sales are in the books; an unconfirmed sale is in the books completely or not at all.
  private func check(_ cinema: Cinema, isConfirmed: Bool, _ place: String) throws {
    let books = try cinema.office(lease: .milliseconds(50)).books
    #expect(books.addUp, "\(place)")
    #expect(books.tickets(of: "before").count == 2, "\(place)")
    let ticket = books.ticket(for: 34340, of: "me")
    if isConfirmed { #expect(ticket != nil, "\(place)") }
    #expect(books.sold == (ticket == nil ? 2 : 3), "\(place)")
    if let ticket { #expect(ticket.history.count == 1, "\(place)") }
    // The next seller is not held up, and adds to the sales in the books.
    let again = try? cinema.office(.phone, lease: .milliseconds(50)).sell(34340, to: "me")
    #expect((again == nil) == (ticket != nil), "\(place)")
    #expect(try cinema.books.sold == 3, "\(place)")
  }

  @Test(arguments: Role.allCases)
  func killedAtAnyPoint(_ role: Role) throws {
    var random = SeededRandom(seed: seed)
    for point in try points(role, &random) {
      for moment in ["before", "after"] {
        let rule = "any@\(point):\(moment):kill"
        let cinema = try opened()
        let outcome = try cinema.start(role, "buy", "34340", faults: rule).outcome()
        let isConfirmed = outcome.output.hasPrefix("34340-")
        try check(cinema, isConfirmed: isConfirmed, "\(role) \(rule) seed \(seed)")
      }
    }
  }

  /// The other side continues to sell within the lease, and none of its sales is overwritten
  /// afterwards.
  @Test(arguments: Role.allCases)
  func stoppedAtAnyPoint(_ role: Role) throws {
    var random = SeededRandom(seed: seed)
    for point in try points(role, &random) {
      let place = "\(role) any@\(point):before:stop seed \(seed)"
      let cinema = try opened()
      let seller = try cinema.start(role, "buy", "34340", faults: "any@\(point):before:stop")
      try eventually("\(place): stops or ends") {
        try seller.hasEnded || Processes.isStopped(seller.child.process)
      }
      let office = try cinema.office(role.peer, lease: .milliseconds(50))
      let begin = Instant.now
      try office.sell(87934, to: "meanwhile")
      // Twenty seconds where a twentieth of a second would do: the machine may be busy, and a lock
      // that is never taken over would be waited for thirty seconds.
      #expect(Instant.now - begin < .seconds(20), "\(place)")
      let output = try seller.waitOrGo()
      let books = try cinema.books
      #expect(books.ticket(for: 87934, of: "meanwhile") != nil, "\(place)")
      #expect(books.addUp, "\(place)")
      #expect(output.hasPrefix("34340-"), "\(place)")
      #expect(books.ticket(for: 34340, of: "me") != nil, "\(place)")
      #expect(books.sold == 4, "\(place)")
    }
  }
}
