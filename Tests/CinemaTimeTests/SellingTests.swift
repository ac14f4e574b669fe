import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeCinemaTime
import WormholeSyscalls

/// Many sellers that sell and return concurrently.
@Suite(.blocking) struct SellingTests {
  /// Each seller has an instance of its own, and sees the rest as separate processes would.
  @Test func eightSellersSellAHundredSeatsAndNoMore() throws {
    let cinema = try Cinema()
    let movie = try #require(Movie.find(34340))
    #expect(movie.seats == 100)
    let sold = Monitor<[String]>([])
    let (refused, errors) = (Monitor(0), Heard<String>())
    let offices = try (0..<8).map { try cinema.office($0.isMultiple(of: 2) ? .phone : .watch) }
    let sellers = try offices.enumerated().map { seller, office in
      try Thread("seller") {
        for number in 0..<20 {
          do {
            let ticket = try office.sell(movie.id, to: "guest \(seller).\(number)")
            sold.withLock { $0.append(ticket.id) }
          } catch Refusal.soldOut {
            refused.withLock { $0 += 1 }
          } catch {
            errors.add("\(error)")
          }
        }
      }
    }
    for seller in sellers { seller.join() }
    #expect(errors.all == [])
    let books = try cinema.books
    #expect(sold.withLock { $0.count } == 100)
    #expect(refused.withLock { $0 } == 60)
    #expect(books.addUp)
    #expect(Set(books.tickets.map(\.id)) == Set(sold.withLock { $0 }))
  }

  /// If a ticket is bought and returned concurrently, each call succeeds or gets the reason why
  /// not.
  @Test func buyingAgainstReturningOfOneTicket() throws {
    let cinema = try Cinema()
    let (phone, watch) = (try cinema.office(.phone), try cinema.office(.watch))
    var balance = 0
    let rounds = TestRun.isSanitized ? 40 : 200
    for round in 0..<rounds {
      let results = Monitor<[Int]>([])
      let threads = try [
        Thread("buys") {
          let hasBought = (try? phone.sell(34340, to: "me")) != nil
          results.withLock { $0.append(hasBought ? 1 : 0) }
        },
        Thread("returns") {
          let hasReturned = (try? watch.takeBack(34340, from: "me")) != nil
          results.withLock { $0.append(hasReturned ? -1 : 0) }
        },
      ]
      for thread in threads { thread.join() }
      balance += results.withLock { $0.reduce(0, +) }
      let books = try cinema.books
      #expect(books.addUp)
      #expect(books.tickets.count == balance, "round \(round)")
      #expect([0, 1].contains(balance))
    }
    #expect(try cinema.books.sold > rounds / 4)
  }

  /// A sale that the command confirms is in the books, whichever process asks.
  @Test func theCommandSellsAcrossProcesses() throws {
    let cinema = try Cinema()
    let sellers = try (0..<8).map { seller in
      try cinema.start(
        seller.isMultiple(of: 2) ? .phone : .watch, "buy", "77788", "--for", "guest \(seller)")
    }
    let tickets = try sellers.map { seller in
      let outcome = try seller.outcome()
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
      return outcome.output.split(separator: "\t").first.map(String.init) ?? ""
    }
    #expect(Set(tickets) == Set(try cinema.books.tickets.map(\.id)))
    #expect(try cinema.books.addUp)
  }
}
