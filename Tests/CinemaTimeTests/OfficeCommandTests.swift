import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeCinemaTime
import WormholeCommandLine
import WormholeSyscalls

@testable import WormholeCinemaTimeCommand

/// The built command, and the table behind the command.
@Suite(.blocking, .notSanitized("about what a command prints"))
struct OfficeCommandTests {
  @Test(arguments: ["office"])
  func aSessionGoesAsItIsKept(_ name: String) throws {
    let stage = try Stage()
    let session = try Session(fixture: "command/\(name).session")
    #expect(session.exchanges.count >= 10)
    for exchange in session.exchanges {
      #expect(try stage.transcript(exchange.command) == exchange.expected, "\(exchange)")
    }
  }

  @Test func theHelpIsAsItIsKept() throws {
    for (arguments, fixture) in [
      (["--help"], "office-help.txt"), (["help", "buy"], "office-buy.txt"),
    ] {
      let outcome = try run(Programs.built("cinematime"), arguments)
      #expect(outcome.status == .exited(0))
      let command = ".build/debug/cinematime " + arguments.joined(separator: " ")
      for difference in try Fixture.differences(
        of: outcome.output, from: "command/" + fixture, renewing: command)
      { Issue.record("\(difference)") }
    }
  }

  @Test(arguments: Table.cinematime.verbs.map(\.name))
  func everyTextNamesTheVerbWithAllItTakes(_ name: String) throws {
    let verb = try #require(Table.cinematime.verb(name))
    let help = Help(.cinematime)
    let manual = Manual(.cinematime).page
    #expect(help.short.contains("  \(name) "))
    #expect(manual.contains(".SS \"cinematime \(name)"))
    for option in verb.options {
      #expect(help.long(verb).contains("  \(option.usage)"))
      #expect(Proposal(.cinematime, [name, "--"]).words.contains { $0.text == "--\(option.name)" })
    }
    #expect(!verb.examples.isEmpty)
    for example in verb.examples where !example.line.contains("|") && !example.line.contains("$(") {
      let line = example.line.split(separator: ">")[0]
      let words = line.split(separator: " ").dropFirst().map(String.init)
      #expect(throws: Never.self, "\(example.line)") {
        _ = try Parser.parse(words, by: .cinematime)
      }
    }
  }

  @Test func shellsOfferFilmsThatCanBeBoughtOrReturned() throws {
    let stage = try Stage()
    _ = try stage.run("cinematime --as phone buy 34340")
    func offers(_ line: String) throws -> Set<String> {
      let outcome = try stage.run("cinematime completions fish -- --as phone \(line)")
      return Set(
        outcome.output.split(separator: "\n").dropFirst().compactMap {
          $0.split(separator: "\t").first.map(String.init)
        })
    }
    #expect(try offers("return ''") == ["34340"])
    #expect(try offers("buy ''").count == 8)
    #expect(try offers("show ''").count == 9)
    #expect(try offers("buy 9") == ["99900"])
  }

  @Test func aFullDiskChangesNothing() throws {
    let cinema = try Cinema()
    try cinema.office(.phone).sell(31413, to: "me")
    let outcome = try cinema.start(.watch, "buy", "34340", faults: "write@1+:before:fail=ENOSPC")
      .outcome()
    #expect(outcome.status == .exited(73) || outcome.status == .exited(70), "\(outcome.errors)")
    #expect(try cinema.books.sold == 1)
  }

  /// A script takes the status 1 for a ticket that is sold out or sold already.
  @Test func aContainerThatCannotBeMadeIsNoRefusedPurchase() throws {
    let stage = try Stage()
    for words in ["buy 34340", "run", "install"] {
      let outcome = try stage.run("cinematime --as phone --container none/office \(words)")
      #expect(outcome.status == .exited(78), "\(words): \(outcome.errors)")
      #expect(
        outcome.errors == "cinematime: cannot open container 'none/office': its parent directory "
          + "does not exist\n")
    }
  }

  /// The purchase is confirmed only once it is on disk: an unsynced purchase is not confirmed.
  @Test func aPurchaseIsConfirmedOnlyWhenItIsDurable() throws {
    let cinema = try Cinema()
    try cinema.office(.phone).sell(31413, to: "me")
    let outcome = try cinema.start(.watch, "buy", "34340", faults: "fsync~/next@1+:before:fail=EIO")
      .outcome()
    #expect(outcome.status != .exited(0))
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors.hasPrefix("cinematime: cannot "))
    let trace = try cinema.start(.watch, "buy", "77788", trace: true).outcome()
    #expect(trace.status == .exited(0))
    let calls = try cinema.folder.read("trace").split(separator: "\n")
    // The file is synced before it becomes visible, and the directory afterwards.
    #expect(calls.count { $0.contains("sync ") } >= 2)
  }

  /// After a power cut the customer would have the ticket again, whose seat may be sold by then.
  @Test func aReturnIsConfirmedOnlyWhenItIsDurable() throws {
    let cinema = try Cinema()
    for movie in [31413, 34340] { try cinema.office(.phone).sell(movie, to: "me") }
    let fault = "fsync~/next@1+:before:fail=EIO"
    let outcome = try cinema.start(.watch, "return", "34340", faults: fault).outcome()
    #expect(outcome.status != .exited(0))
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors.hasPrefix("cinematime: cannot "))
    let trace = try cinema.start(.watch, "return", "31413", trace: true).outcome()
    #expect(trace.status == .exited(0), "\(trace.errors)")
    let calls = try cinema.folder.read("trace").split(separator: "\n")
    // The file is synced before it becomes visible, and the directory afterwards.
    #expect(calls.count { $0.contains("sync ") } >= 2)
  }

  /// Each side's own list, as the side's app stores it; only the app changes it.
  @Test func inTheSampleAListCanBeLookedAtAndIsTheAppsToChange() throws {
    let cinema = try Cinema()
    try cinema.container.defaults("sample.phone").set([34340], forKey: "purchased")
    let tickets = try cinema.run(.phone, "tickets", "--sample")
    #expect(tickets.output == "34340\t5:00 PM\tThe General\n")
    #expect(try cinema.run(.watch, "tickets", "--sample").output.isEmpty)
    #expect(try cinema.run(.phone, "tickets").output.isEmpty)
    let list = try cinema.run(.phone, "list", "--sample").output.split(separator: "\n")
    #expect(list.count == 9)
    #expect(list.contains("34340\t5:00 PM\tThe General\t-\t34340"))
    #expect(list.contains("31413\t1:00 PM\tAngel On My Shoulder\t-\t-"))
    for (words, action) in [
      (["buy", "31413"], "buy"), (["return", "34340"], "return"),
      (["history"], "print the history"), (["show", "34340"], "show"),
    ] {
      let outcome = try TestSupport.run(
        Programs.built("cinematime"), ["--as", "phone"] + words + ["--sample"],
        environment: cinema.environment)
      #expect(outcome.status == .exited(64), "\(words)")
      #expect(outcome.errors.hasPrefix("cinematime: cannot \(action) with --sample: "))
    }
    #expect(try cinema.books.sold == 0)
    #expect(try cinema.run(.phone, "tickets", "--sample", "--everybody").status == .exited(64))
  }

  @Test func oneSideHasOneApp() throws {
    let cinema = try Cinema()
    let app = try cinema.app(.phone)
    try app.shows(tickets: [])
    let outcome = try cinema.run(.phone, "run")
    #expect(outcome.status == .exited(69))
    #expect(outcome.errors.contains("cannot join 'phone'") || outcome.errors.contains("phone"))
  }
}
