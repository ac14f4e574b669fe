import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeCinemaTime
import WormholeSyscalls

/// The app in a terminal: its content, its redrawing, and its end.
@Suite(.blocking, .notSanitized("the apps run in processes of their own")) struct ScreenTests {
  @Test func itIsReadableInEightyColumns() throws {
    let terminal = try TerminalRun(.phone)
    try terminal.type("buy 34340\n")
    try terminal.shows(" 5 5:00 PM  34340    The General               34340-1")
    // The ticket may be drawn before the end of the purchase, and a page arrives in parts.
    try terminal.shows("bought: The General")
    try eventually("the page") { terminal.lines.filter { !$0.isEmpty }.count == 15 }
    let lines = terminal.lines
    #expect(lines[0] == "CinemaTime on the phone, for me")
    #expect(lines.contains("To buy"))
    #expect(lines.contains("Tickets"))
    #expect(lines.contains(" 2 2:00 PM  23415    Baby Face Morgan          60 seats left"))
    #expect(lines.contains("bought: The General"))
    #expect(lines.filter { !$0.isEmpty }.count == 15)
    #expect(lines.allSatisfy { $0.count <= 80 })
    try terminal.end(15)
  }

  /// Actions of the other side are drawn, and only the changed parts.
  @Test func onlyWhatHasChangedIsRedrawn() throws {
    let terminal = try TerminalRun(.watch)
    try terminal.shows("No tickets")
    // The prompt is the last line of the page.
    try terminal.shows(">")
    let before = terminal.bytes.count
    try terminal.cinema.office(.phone).sell(77788, to: "anna")
    try terminal.shows(" 7 7:00 PM  77788    The Royal Bed             39 seats left")
    let after = terminal.bytes.dropFirst(before)
    #expect(after.count < 200, "\(String(decoding: after, as: UTF8.self))")
    let all = String(decoding: terminal.bytes, as: UTF8.self)
    #expect(!all.contains("\u{1B}[2J"))
    #expect(all.split(separator: "\u{1B}[J").count <= 2)
    try terminal.end(15)
  }

  @Test func whatIsTypedCanBeCorrected() throws {
    let terminal = try TerminalRun(.phone)
    try terminal.shows("No tickets")
    try terminal.type("buy 343é\u{7F}41")
    try terminal.shows("> buy 34341")
    try terminal.type("\u{7F}0\n")
    try terminal.shows("bought: The General")
    try terminal.type("nonsense\n")
    try terminal.shows("cannot do 'nonsense': type 'buy ID', 'return ID' or 'quit'")
    try terminal.type("quit\n")
    #expect(try terminal.wait() == .exited(0))
    try terminal.isLeftAsItWas()
  }

  @Test func arrowsAndNumbersSelectAFilm() throws {
    let terminal = try TerminalRun(.phone)
    try terminal.type("\u{1B}[B\u{1B}[B\u{1B}OB\u{1B}[A")
    try terminal.shows("▸2 2:00 PM")
    try terminal.type("\n")
    try terminal.shows("Baby Face Morgan, 2:00 PM")
    try terminal.shows("no ticket; 'buy 2' buys one")
    try terminal.type("buy 2\n")
    try terminal.shows("bought: Baby Face Morgan")
    try terminal.type("2\n")
    try terminal.shows("ticket 23415-1")
    try terminal.shows("██")
    try terminal.type("\u{1B}[3~help\n")
    try terminal.shows("arrows select;")
    // The code is light on dark, whatever the ground of the terminal.
    #expect(String(decoding: terminal.bytes, as: UTF8.self).contains("\u{1B}[38;5;231;48;5;16m██"))
    try terminal.end(15)
  }

  /// Both sides beside each other, each in a process of its own.
  @Test func bothSidesAreInOneTerminal() throws {
    let terminal = try TerminalRun(.phone, "both")
    try terminal.shows("▸ Phone running, process ")
    try terminal.type("5\n\n")
    func count(_ text: String, _ line: String) -> Int { line.ranges(of: text).count }
    try eventually("both show the ticket") {
      terminal.lines.contains { count("ticket 34340-1", $0) == 2 }
    }
    try eventually("the time is told") {
      terminal.lines.contains { $0.contains(" ms of each other") }
    }
    try terminal.type("kill\n")
    try terminal.shows("▸ Phone ended")
    try terminal.type("\u{1B}[C2\n\n")
    try eventually("the watch sells") { terminal.lines.contains { $0.contains("ticket 23415-2") } }
    try terminal.type("\u{1B}[Dstart\n")
    try terminal.shows("▸ Phone running")
    try eventually("the phone shows it too") {
      terminal.lines.contains { count("ticket 23415-2", $0) == 2 }
    }
    try terminal.shows("2 sold, 0 returned, 2 valid: the books add up")
    try terminal.type("quit\n")
    #expect(try terminal.wait() == .exited(0))
    try terminal.isLeftAsItWas()
  }

  /// A killed process exists until its end is collected, and cannot be resumed.
  @Test func aSideThatWasJustKilledIsStartedAnew() throws {
    let terminal = try TerminalRun(.phone, "both")
    try terminal.shows("▸ Phone running, process ")
    let before = try #require(terminal.process(ofSide: "Phone"))
    try terminal.type("kill\nstart\n")
    try eventually("the phone runs anew") {
      let now = terminal.process(ofSide: "Phone")
      return now != nil && now != before
    }
    try terminal.type("quit\n")
    #expect(try terminal.wait() == .exited(0))
    try terminal.isLeftAsItWas()
  }

  /// The third start of a process in the program fails: the first after those of both sides.
  @Test func aSideThatCannotBeStartedIsToldAndTheOtherGoesOn() throws {
    let terminal = try TerminalRun(.phone, "both", faults: "spawn@3:before:fail=EAGAIN")
    try terminal.shows("▸ Phone running, process ")
    try terminal.type("kill\n")
    try terminal.shows("▸ Phone ended")
    try terminal.type("start\n")
    try terminal.shows("cannot start the app of 'phone'")
    try terminal.type("\u{1B}[C5\n\n")
    try eventually("the watch sells") { terminal.lines.contains { $0.contains("ticket 34340-1") } }
    try terminal.type("\u{1B}[Dstart\n")
    try terminal.shows("▸ Phone running")
    try terminal.type("quit\n")
    #expect(try terminal.wait() == .exited(0))
    try terminal.isLeftAsItWas()
  }

  @Test func aFilmThatDoesNotExistIsNotShown() throws {
    let terminal = try TerminalRun(.phone)
    try terminal.type("show 99\n")
    try terminal.shows("cannot find film '99'")
    try terminal.end(15)
  }

  @Test func aSideThatWasJustKilledTakesNoOrder() throws {
    let terminal = try TerminalRun(.phone, "both")
    try terminal.shows("▸ Phone running, process ")
    try terminal.type("kill\nbuy 5\n")
    try terminal.shows("the phone does not run: start it first")
    try terminal.type("quit\n")
    #expect(try terminal.wait() == .exited(0))
  }

  /// Any program with write access to the container may have written any number of a ticket.
  @Test(arguments: ["run", "both"])
  func aTicketsNumberIsCutAndMovesNoCursor(_ verb: String) throws {
    let terminal = try TerminalRun(.phone, verb)
    let id = #"7\u001B[2J"# + String(repeating: "9", count: 60)
    let text =
      #"{"tickets":[{"id":"\#(id)","movie":34340,"customer":"me","history":[]}],"#
      + #""returned":[],"sold":1,"takenBack":0}"#
    let books = try JSONDecoder().decode(Books.self, from: Data(text.utf8))
    try terminal.cinema.container.channel("tickets", of: Books.self).put(books)
    try eventually("the ticket is shown") {
      terminal.lines.contains { $0.contains("7?[2J999") }
    }
    #expect(!String(decoding: terminal.bytes, as: UTF8.self).contains("\u{1B}[2J"))
    try terminal.type("quit\n")
    #expect(try terminal.wait() == .exited(0))
    try terminal.isLeftAsItWas()
  }

  @Test(arguments: [("INT", 2), ("TERM", 15), ("HUP", 1)])
  func aSignalLeavesTheTerminalAsItWas(_ name: String, _ signal: Int32) throws {
    let terminal = try TerminalRun(.phone)
    try terminal.shows("No tickets")
    #expect(terminal.mode != terminal.modeBefore)
    try terminal.end(signal)
  }
}

/// `cinematime run` in a pseudo-terminal of 80 columns and 24 rows, with a model of its screen.
final class TerminalRun: Sendable {
  let cinema: Cinema
  private let child: Child
  private let terminal: PseudoTerminal
  private let written = Monitor<(bytes: [UInt8], screen: ScreenModel)>(([], ScreenModel()))
  private let hasEnded = Monitor(false)
  private let reader: Thread
  let modeBefore: Terminal.Mode?

  init(_ role: Role, _ verb: String = "run", faults: String = "") throws {
    cinema = try Cinema()
    let terminal = try PseudoTerminal()
    self.terminal = terminal
    let program = terminal.programEnd
    modeBefore = terminal.mode
    child = try Child.spawn(
      Programs.built("cinematime"), ["--as", role.rawValue, verb],
      environment: Processes.environment(
        setting: cinema.environment + ["WORMHOLE_FAULTS=\(faults)"]),
      input: program, output: program, error: program, ownSession: true)
    reader = try Thread("terminal") { [written] in
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while let count = try? buffer.withUnsafeMutableBytes({ try terminal.own.read(into: $0) }),
        count > 0
      {
        let more = Array(buffer[..<count])
        written.signal { state in
          state.bytes += more
          state.screen.take(more)
        }
      }
    }
  }

  deinit {
    hasEnded.withLock { hasEnded in
      guard !hasEnded else { return }
      try? child.send(.kill)
      _ = try? child.wait()
    }
    // When no process holds the program's end any more, reading ends.
    terminal.closeProgramEnd()
    reader.join()
  }

  var bytes: [UInt8] { written.withLock { $0.bytes } }
  var lines: [String] { written.withLock { $0.screen.lines } }
  var mode: Terminal.Mode? { terminal.mode }

  /// The number in `Phone running, process 1234`, in the first line of `both`.
  func process(ofSide name: String) -> String? {
    let start = "\(name) running, process "
    return lines[0].ranges(of: start).first.map { range in
      String(lines[0][range.upperBound...].prefix { $0.isNumber })
    }
  }

  func type(_ text: String) throws {
    try terminal.own.writeFully(Array(text.utf8))
  }

  func shows(_ line: String) throws {
    let found = written.wait(until: .now + patience) { state in
      state.screen.lines.contains { $0.hasPrefix(line) } ? true : nil
    }
    guard found != nil else { throw TooLate(description: "\(line) in \(lines)") }
  }

  func wait() throws -> ChildStatus {
    try hasEnded.withLock { hasEnded in
      let status = try child.wait()
      hasEnded = true
      return status
    }
  }

  /// Ends the app by a signal, as its parent process sees.
  func end(_ signal: Int32) throws {
    try child.send(number: signal)
    #expect(try wait() == .signalled(signal))
    try isLeftAsItWas()
  }

  func isLeftAsItWas() throws {
    #expect(mode == modeBefore)
    // The terminal shows its earlier content again.
    try eventually("the screen is left") {
      String(decoding: bytes, as: UTF8.self).hasSuffix("\u{1B}[?1049l")
    }
  }
}

/// As much of a terminal as the app uses.
struct ScreenModel: Sendable {
  private var cells = [[Character]](repeating: [], count: 24)
  private var (row, column) = (0, 0)
  private var rest: [UInt8] = []

  var lines: [String] {
    cells.map { line in
      var line = line
      while line.last == " " { line.removeLast() }
      return String(line)
    }
  }

  mutating func take(_ bytes: [UInt8]) {
    rest += bytes
    // An unfinished sequence waits for its end.
    guard let text = String(validating: rest, as: UTF8.self) else { return }
    var characters = Array(text.unicodeScalars)[...]
    rest = []
    while let scalar = characters.first {
      if scalar == "\u{1B}" {
        guard let end = characters.dropFirst(2).firstIndex(where: { $0.properties.isAlphabetic })
        else {
          rest = Array(String(String.UnicodeScalarView(characters)).utf8)
          return
        }
        obey(String(String.UnicodeScalarView(characters[(characters.startIndex + 2)...end])))
        characters = characters[(end + 1)...]
      } else {
        characters = characters.dropFirst()
        put(Character(scalar))
      }
    }
  }

  private mutating func put(_ character: Character) {
    guard row < cells.count else { return }
    while cells[row].count <= column { cells[row].append(" ") }
    cells[row][column] = character
    column += 1
  }

  private mutating func obey(_ sequence: String) {
    let numbers = sequence.dropLast().split(separator: ";").map { Int($0) ?? 0 }
    switch sequence.last {
    case "H": (row, column) = (numbers[0] - 1, numbers[1] - 1)
    case "K": if row < cells.count { cells[row] = Array(cells[row].prefix(column)) }
    case "J":
      cells[row] = Array(cells[row].prefix(column))
      for below in row + 1..<cells.count { cells[below] = [] }
    default: break
    }
  }
}
