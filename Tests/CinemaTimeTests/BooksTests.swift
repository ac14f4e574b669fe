import FoundationEssentials
import TestTraits
import Testing
import WormholeCinemaTime

/// The rules of the books, as a value.
@Suite(.blocking) struct BooksTests {
  private let now = Date(timeIntervalSince1970: 1_000_000)

  @Test func theNineFilmsAreThere() {
    #expect(Movie.all.count == 9)
    #expect(Movie.all.map(\.time).first == "1:00 PM")
    #expect(Movie.find(858555)?.ticketText == "Something to Sing About @ 8:00 PM")
    for movie in Movie.all {
      #expect(movie.seats > 0)
      #expect(movie.synopsis.hasSuffix("."))
      // A narrow space that does not break would be another text for a scanner.
      #expect(!movie.ticketText.contains { !$0.isASCII })
    }
  }

  @Test func filmsAreGroupedByTimeAndThenSortedByTitle() throws {
    let late = try JSONDecoder().decode(
      Movie.self,
      from: Data(
        """
        {"id": 1, "title": "A Late One", "director": "", "actors": [], "synopsis": "",
         "poster": "", "hour": 13, "seats": 1}
        """.utf8))
    let groups = Showing.groups(of: Movie.all.reversed() + [late])
    #expect(groups.map(\.time).first == "1:00 PM")
    #expect(groups[0].movies.map(\.title) == ["A Late One", "Angel On My Shoulder"])
    #expect(groups.count == 9)
  }

  @Test func timesAreThoseOfAClock() throws {
    for (hour, time) in [(0, "12:00 AM"), (9, "9:00 AM"), (12, "12:00 PM"), (23, "11:00 PM")] {
      let movie = try JSONDecoder().decode(
        Movie.self,
        from: Data(
          """
          {"id": 1, "title": "", "director": "", "actors": [], "synopsis": "", "poster": "",
           "hour": \(hour), "seats": 1}
          """.utf8))
      #expect(movie.time == time)
    }
  }

  @Test(arguments: [(0, -1), (-1, 0), (Int.max, 0), (0, Int.max), (Int.min, Int.max)])
  func numbersThatNobodyCanCountFurtherFromAreRefused(_ sold: Int, _ takenBack: Int) throws {
    func books(_ sold: Int, _ takenBack: Int) throws -> Books {
      try JSONDecoder().decode(
        Books.self,
        from: Data(
          """
          {"tickets": [], "returned": [], "sold": \(sold), "takenBack": \(takenBack)}
          """.utf8))
    }
    #expect(try books(3, 3).addUp)
    #expect(throws: DecodingError.self) { try books(sold, takenBack) }
  }

  /// Books that were written with one more ticket could not be read again.
  @Test func theHighestNumberOfTicketsIsNotExceeded() throws {
    let text = """
      {"tickets": [], "returned": [], "sold": \(Int.max - 1), "takenBack": \(Int.max - 1)}
      """
    var books = try JSONDecoder().decode(Books.self, from: Data(text.utf8))
    let movie = try #require(Movie.find(34340))
    #expect(throws: Refusal.soldOut(movie)) { () throws in
      _ = try books.sell(34340, to: "me", by: .phone, at: now)
    }
    #expect(books.addUp)
    let again = try JSONDecoder().decode(Books.self, from: JSONEncoder().encode(books))
    #expect(again == books)
  }

  @Test func whatIsRefusedChangesNothing() throws {
    var books = Books()
    _ = try books.sell(34340, to: "me", by: .phone, at: now)
    let before = books
    let movie = try #require(Movie.find(34340))
    #expect(throws: Refusal.alreadySold(movie, books.tickets[0])) { () throws in
      _ = try books.sell(34340, to: "me", by: .watch, at: now)
    }
    #expect(throws: Refusal.unknownMovie("7")) { () throws in
      _ = try books.sell(7, to: "me", by: .watch, at: now)
    }
    #expect(throws: Refusal.unknownMovie("7")) { () throws in
      _ = try books.takeBack(7, from: "me", by: .watch, at: now)
    }
    #expect(throws: Refusal.notSold(movie, "anna")) { () throws in
      _ = try books.takeBack(34340, from: "anna", by: .watch, at: now)
    }
    for name in ["", String(repeating: "x", count: 101)] {
      #expect(throws: Refusal.invalidCustomer(name)) { () throws in
        _ = try books.sell(34340, to: name, by: .watch, at: now)
      }
    }
    #expect(books == before)
    #expect(books.addUp)
  }

  @Test func aFullHouseIsRefusedUntilSomebodyReturnsATicket() throws {
    var books = Books()
    let movie = try #require(Movie.find(77788))
    for number in 0..<movie.seats {
      _ = try books.sell(movie.id, to: "\(number)", by: .phone, at: now)
    }
    #expect(books.seatsLeft(for: movie) == 0)
    #expect(throws: Refusal.soldOut(movie)) { () throws in
      _ = try books.sell(movie.id, to: "late", by: .watch, at: now)
    }
    _ = try books.takeBack(movie.id, from: "7", by: .watch, at: now)
    _ = try books.sell(movie.id, to: "late", by: .watch, at: now)
    #expect(books.addUp)
    #expect(books.sold == movie.seats + 1)
  }

  @Test func aTicketsHistorySaysWhoDidWhatWhen() throws {
    var books = Books()
    let ticket = try books.sell(34340, to: "me", by: .phone, at: now)
    _ = try books.takeBack(34340, from: "me", by: .watch, at: now + 60)
    let again = try books.sell(34340, to: "me", by: .watch, at: now + 120)
    #expect(again.id != ticket.id)
    let deeds = books.history
    #expect(deeds.map(\.ticket.id) == [ticket.id, ticket.id, again.id])
    #expect(deeds.map(\.deed.action) == [.bought, .returned, .bought])
    #expect(deeds.map(\.deed.role) == [.phone, .watch, .watch])
    #expect(deeds.map(\.deed.date) == [now, now + 60, now + 120])
  }

  @Test func onlySoManyReturnedTicketsAreKept() throws {
    var books = Books()
    for number in 0..<300 {
      _ = try books.sell(34340, to: "\(number)", by: .phone, at: now)
      _ = try books.takeBack(34340, from: "\(number)", by: .phone, at: now)
    }
    #expect(books.returned.count == Books.mostReturned)
    #expect(books.returned.last?.customer == "299")
    #expect(books.addUp)
    #expect(books.takenBack == 300)
  }

  @Test func booksThatDoNotAddUpAreSeen() throws {
    func books(_ sold: Int, _ customers: [String]) throws -> Books {
      let tickets = customers.enumerated().map { number, customer in
        #"{"id":"34340-\#(number)","movie":34340,"customer":"\#(customer)","history":[]}"#
      }
      let text =
        #"{"tickets":[\#(tickets.joined(separator: ","))],"returned":[],"sold":\#(sold),"#
        + #""takenBack":0}"#
      return try JSONDecoder().decode(Books.self, from: Data(text.utf8))
    }
    #expect(try books(2, ["a", "b"]).addUp)
    #expect(try !books(3, ["a", "b"]).addUp)
    #expect(try !books(2, ["a", "a"]).addUp)
    #expect(try !books(101, (0...100).map { "\($0)" }).addUp)
  }
}
