import TestSupport
import TestTraits
import Testing
import WormholeCinemaTime
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeCinemaTimeCommand

/// `cinematime serve`: two processes, their page in a real browser, and who may ask.
@Suite(.blocking, .notSanitized("the apps run in processes of their own"))
struct CinemaPageTests {
  /// The later side may be heard first: a buyer waits for the disk, and the other side does not.
  @Test(arguments: [Role.phone, .watch], [false, true])
  func theLateSideIsNamed(_ late: Role, isHeardFirst: Bool) {
    let lags = LagMeter()
    let times: [(role: Role, at: Int64)] = [(late.peer, 1_000_000_000), (late, 3_500_000_000)]
    for (role, at) in isHeardFirst ? times.reversed() : times {
      lags.hear(["at": .integer(at), "tickets": [["id": "34340-1"]]], from: role)
    }
    #expect(lags.sentence == "The \(late) showed it 2 s later.")
  }

  @Test func bothSidesAreFedByTheirOwnProcesses() throws {
    let page = try ServedCinema()
    let both = try page.state("both run") { $0.processes.count == 2 }
    let (phone, watch) = (both.processes[0], both.processes[1])
    #expect(phone != watch)
    #expect(try page.act("watch", "buy", 34340) == 200)
    let bought = try page.state("both have it, and the time is told") { state in
      state.tickets == [["34340-1"], ["34340-1"]]
        && state["lag"]?.stringValue?.hasPrefix("Both showed it within ") == true
    }
    #expect(bought["lag"]?.stringValue?.hasSuffix(" ms of each other.") == true)
    #expect(bought["books"]?["addUp"] == true)
    // A killed side shows what it has shown, and what was missed once it runs again.
    #expect(try page.act("phone", "kill") == 200)
    try page.state("the phone has ended") { $0.conditions == ["ended", "running"] }
    #expect(!Processes.isRunning(phone))
    #expect(try page.act("phone", "buy", 23415) == 200)
    #expect(try page.act("watch", "buy", 77788) == 200)
    try page.state("only the watch has it") { $0.tickets[1].count == 2 && $0.tickets[0].count == 1 }
    #expect(try page.act("phone", "start") == 200)
    try page.state("the phone has it too") { state in
      state.tickets[0].count == 2 && state.conditions == ["running", "running"]
    }
    // A stopped side takes no orders, and catches up when it resumes.
    #expect(try page.act("watch", "stop") == 200)
    try eventually("the watch is stopped") { try Processes.isStopped(Int32(watch)) }
    #expect(try page.act("phone", "return", 34340) == 200)
    try page.state("only the phone has returned it") { $0.tickets.map(\.count) == [1, 2] }
    #expect(try page.act("watch", "start") == 200)
    let end = try page.state("the watch catches up") { state in
      state.tickets.map(\.count) == [1, 1] && state["books"]?["returned"] == 1
    }
    #expect(end["books"]?["sold"] == 2 && end["books"]?["returned"] == 1)
    #expect(end["books"]?["addUp"] == true)
  }

  /// Books that cannot be read are not books that add up.
  @Test func thePageSaysThatTheBooksCannotBeRead() throws {
    let page = try ServedCinema()
    #expect(try page.act("watch", "buy", 34340) == 200)
    let sold = try page.state("it is sold") { $0["books"]?["sold"] == 1 }
    #expect(sold["books"]?["readable"] == true)
    let place = try page.cinema.folder.descriptor.open(
      "office/channels/tickets", [.readOnly, .directory])
    try place.unlink("value.plist")
    try place.open("value.plist", [.writeOnly, .create], mode: 0o600).write("damaged")
    // The end of an app is a reason to draw the page again.
    #expect(try page.act("phone", "kill") == 200)
    let state = try page.state("the phone has ended") {
      $0.conditions.first == "ended" && $0["books"]?["readable"] == false
    }
    #expect(state["books"]?["addUp"] == false)
  }

  /// The apps end with the server, however the server ends.
  @Test(arguments: [Processes.Signal.terminate, .kill])
  func theAppsEndWithTheServer(_ signal: Processes.Signal) throws {
    let page = try ServedCinema()
    let processes = try page.state("both run") { $0.processes.count == 2 }.processes
    try page.server.child.send(signal)
    for process in processes {
      try eventually("it ends") { !Processes.isRunning(process) }
    }
  }

  @Test func otherRequestsAreRefused() throws {
    let page = try ServedCinema()
    for (action, side) in [("kill", "1"), ("kill", "server"), ("", "phone")] {
      #expect(try page.act(side, action) == (side == "phone" ? 200 : 400))
    }
    #expect(try page.act("phone", "kill", headers: []) == 403)
    #expect(
      try page.act("phone", "kill", headers: ["X-Wormhole-Token: \(page.token)"]) == 403)
    try page.state("both run") { $0.conditions == ["running", "running"] }
    let outcome = try run(
      Programs.built("cinematime"), ["serve", "--listen", "0.0.0.0:0"],
      environment: page.cinema.environment)
    #expect(outcome.status == .exited(64))
    #expect(outcome.errors.contains("--allow-remote"))
  }

  /// In a browser, by mouse: buy on the watch and see it on the phone; kill the phone, buy, start
  /// it and see it.
  @Test func aPersonBuysOnOneSideAndSeesItOnTheOther() throws {
    guard Browser.isInstalled(for: "the page of the ticket office in a browser") else { return }
    let page = try ServedCinema()
    let browser = try Browser()
    try browser.open(page.address)
    func ticket(_ id: String, on side: String) -> String {
      "document.querySelector('#\(side) [data-ticket=\"\(id)\"] svg')"
    }
    try browser.wait("document.getElementById('watch-buy-34340')", "the films")
    try browser.click("watch-buy-34340")
    try browser.wait(ticket("34340-1", on: "phone"), "the ticket on the phone")
    try browser.wait(
      "document.getElementById('lag').innerText.includes(' ms of each other')", "ms")
    try browser.keepScreenshot("cinema")
    try browser.click("phone-kill")
    try browser.wait("document.querySelector('#phone.ended')", "the end of the phone")
    #expect(try browser.value("document.getElementById('phone-buy-23415').disabled") == true)
    try browser.click("watch-buy-77788")
    try browser.wait(ticket("77788-2", on: "watch"), "the ticket on the watch")
    #expect(try browser.value("\(ticket("77788-2", on: "phone")) === null") == true)
    try browser.keepScreenshot("cinema-killed")
    try browser.click("phone-start")
    try browser.wait(ticket("77788-2", on: "phone"), "the ticket on the phone")
    try browser.wait("document.getElementById('books').innerText.includes('✓')", "the books")
    // By keyboard: the focus stays on a button that is drawn again.
    _ = try browser.value("document.getElementById('watch-return-34340').focus()")
    try browser.press("\u{E007}")
    try browser.wait("!\(ticket("34340-1", on: "phone"))", "the return")
    #expect(try browser.value(Self.unlabelled) == 0)
    #expect(try browser.value(Self.weakest).realOrInteger >= 4.5)
    #expect(try browser.log() == [])
  }

  /// The code on the page is one that another program reads, and it names the ticket.
  @Test func theCodeNamesTheTicket() throws {
    guard Browser.isInstalled(for: "the codes of a page in a browser") else { return }
    guard Programs.installed("zbarimg") != nil else {
      return skip("the codes of a page in a browser", missing: "zbarimg")
    }
    let page = try ServedCinema()
    #expect(try page.act("phone", "buy", 34340) == 200)
    let browser = try Browser()
    try browser.open(page.address)
    try browser.wait("document.querySelectorAll('[data-ticket] svg').length === 2", "both codes")
    try browser.keepScreenshot("codes")
    let outcome = try run(
      "zbarimg",
      [
        "--quiet", "--raw", "--nodbus", "-Sdisable", "-Sqrcode.enable",
        Browser.path(ofScreenshot: "codes"),
      ])
    let lines = Set(outcome.output.split(separator: "\n"))
    #expect(lines == ["The General @ 5:00 PM, ticket 34340-1"])
  }

  private static let unlabelled = """
    [...document.querySelectorAll('button, section, svg[role]')].filter(e =>
      !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby'))).length
    """

  /// The lowest contrast of a card's white letters with its ground.
  private static let weakest = """
    Math.min(...[...document.querySelectorAll('.card')].flatMap(card =>
      [...card.style.background.matchAll(/rgb\\((\\d+), (\\d+), (\\d+)\\)/g)].map(m => {
        const part = n => (c => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)(n / 255);
        return 1.05 / (.2126 * part(m[1]) + .7152 * part(m[2]) + .0722 * part(m[3]) + .05);
      })))
    """
}

/// `cinematime serve` in a process of its own.
private final class ServedCinema {
  let cinema: Cinema
  let server: Running
  let address: String
  let port: Int
  let token: Substring

  init() throws {
    cinema = try Cinema()
    let server = try Running(
      Programs.built("cinematime"), ["serve"], environment: cinema.environment)
    self.server = server
    address = try eventually("the address") { () -> String? in
      try server.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().first
        .map(String.init)
    }
    let parts = address.split(separator: "/")
    port = Int(parts[1].split(separator: ":")[1])!
    token = parts[2]
  }

  deinit { if !server.hasEnded { try? server.child.send(.terminate) } }

  @discardableResult
  func state(_ what: String, _ isIt: (PropertyListValue) -> Bool) throws -> PropertyListValue {
    try eventually(what) {
      let connection = try WebConnection(port: port)
      try connection.ask("/\(token)/state")
      let value = try JSONPropertyList.decode(Array(try connection.reply().body.utf8))
      return isIt(value) ? value : nil
    }
  }

  func act(
    _ side: String, _ action: String, _ movie: Int? = nil, headers: [String]? = nil
  ) throws -> Int {
    let connection = try WebConnection(port: port)
    let film = movie.map { ",\"movie\":\($0)" } ?? ""
    try connection.ask(
      "/\(token)/do", method: "POST",
      headers ?? ["Origin: http://127.0.0.1:\(port)", "X-Wormhole-Token: \(token)"],
      body: "{\"side\":\"\(side)\",\"action\":\"\(action)\"\(film)}")
    return try connection.reply().status
  }
}

extension Processes {
  /// Whether the process has not ended, whoever collects its status.
  fileprivate static func isRunning(_ process: Int) -> Bool {
    let state = try? state(Int32(process))
    return state != nil && state != "Z"
  }
}

extension PropertyListValue {
  private var sides: [PropertyListValue] { self["sides"]?.arrayValue ?? [] }
  fileprivate var conditions: [String] { sides.compactMap { $0["state"]?.stringValue } }
  fileprivate var processes: [Int] {
    sides.compactMap { $0["process"]?.intValue }.filter { $0 > 0 }
  }
  /// The tickets that the phone and the watch show.
  fileprivate var tickets: [[String]] {
    let all = sides.map { ($0["tickets"]?.arrayValue ?? []).compactMap { $0["id"]?.stringValue } }
    return all.isEmpty ? [[], []] : all
  }
  fileprivate var realOrInteger: Double {
    if case .real(let number) = self { number } else { Double(intValue ?? 0) }
  }
}
