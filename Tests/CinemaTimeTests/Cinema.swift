import TestSupport
import Wormhole
import WormholeCinemaTime
import WormholePropertyLists
import WormholeSyscalls

/// A test's own container, and the programs that run in it.
final class Cinema: Sendable {
  let folder: TemporaryDirectory
  var path: String { folder.path + "/office" }
  let container: SharedContainer

  init() throws {
    folder = try TemporaryDirectory()
    container = try SharedContainer(directory: folder.path + "/office")
  }

  var environment: [String] {
    // Where starts are registered for groups, and what a test must not find of the account's.
    ["WORMHOLE_CONTAINER=\(path)", "HOME=\(folder.path)", "NO_COLOR="]
  }

  /// The office, opened as in another process.
  func office(_ role: Role = .phone, lease: Duration = .seconds(1)) throws -> BoxOffice {
    var options = Options()
    options.lease = lease
    return BoxOffice(try SharedContainer(directory: path, options: options), as: role)
  }

  var books: Books { get throws { try BoxOffice(container, as: .phone).books } }

  func album(_ role: Role) -> Album { Album(of: role, beside: path) }

  func command(_ role: Role, _ words: [String]) -> [String] { ["--as", role.rawValue] + words }

  func run(_ role: Role, _ words: String...) throws -> ProcessOutcome {
    try TestSupport.run(
      Programs.built("cinematime"), command(role, words), environment: environment)
  }

  func start(
    _ role: Role, _ words: String..., faults: String = "", trace: Bool = false
  ) throws -> Running {
    var environment = environment + ["WORMHOLE_FAULTS=\(faults)"]
    if trace { environment.append("WORMHOLE_FAULT_TRACE=\(folder.path)/trace") }
    return try Running(Programs.built("cinematime"), command(role, words), environment: environment)
  }

  /// The app of a role, which receives commands and prints its state.
  func app(_ role: Role, faults: String = "") throws -> AppProcess {
    try AppProcess(self, role, faults: faults)
  }

  /// Everything in a role's album, leftovers included.
  func files(_ role: Role) throws -> Set<String> {
    guard
      let folder = try? folder.descriptor.open("office.\(role.rawValue)", [.readOnly, .directory])
    else { return [] }
    return Set(try folder.names())
  }
}

/// `cinematime run` in a separate process, with pipes for its input and output.
final class AppProcess: Sendable {
  let child: Child
  private let keys: SharedPipe
  private let words: SharedPipe
  private let heard = Monitor<(lines: [Line], hasEnded: Bool)>(([], false))
  private let reader: Thread
  private let hasEnded = Monitor(false)

  /// A line of output, and the time of its arrival.
  struct Line: Sendable {
    let text: String
    let time: Instant
    let value: PropertyListValue?
  }

  init(_ cinema: Cinema, _ role: Role, faults: String) throws {
    let (keys, words) = (try SharedPipe(), try SharedPipe())
    child = try Child.spawn(
      Programs.built("cinematime"), ["--json", "--as", role.rawValue, "run"],
      environment: Processes.environment(
        setting: cinema.environment + ["WORMHOLE_FAULTS=\(faults)"]),
      input: keys.reading, output: words.writing, resetsSignals: true)
    keys.closeReading()
    words.closeWriting()
    (self.keys, self.words) = (keys, words)
    reader = try Thread("reader") { [heard] in
      var rest: [UInt8] = []
      while let more = try? words.collect(limit: 0), !more.isEmpty {
        let time = Instant.now
        rest += more
        var lines: [Line] = []
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
          let text = Array(rest[..<end])
          rest.removeSubrange(...end)
          lines.append(
            Line(
              text: String(decoding: text, as: UTF8.self), time: time,
              value: try? JSONPropertyList.decode(text)))
        }
        let new = lines
        heard.signal { $0.lines += new }
      }
      heard.signal { $0.hasEnded = true }
    }
  }

  deinit {
    end(.kill)
    reader.join()
  }

  /// Ends the app by a signal, and waits for its end.
  func end(_ signal: Processes.Signal) {
    hasEnded.withLock { hasEnded in
      guard !hasEnded else { return }
      hasEnded = true
      try? child.send(signal)
      _ = try? child.wait()
    }
  }

  /// Waits until the app has ended on its own.
  func wait() throws -> ChildStatus {
    try hasEnded.withLock { hasEnded in
      let status = try child.wait()
      hasEnded = true
      return status
    }
  }

  func type(_ line: String) throws { try keys.write(Array((line + "\n").utf8)) }

  var count: Int { heard.withLock { $0.lines.count } }

  var lines: [Line] { heard.withLock { $0.lines } }

  /// Waits for a matching line after the first `count` lines; returns the line.
  func line(
    after count: Int = 0, _ what: String, _ isIt: (PropertyListValue) -> Bool
  ) throws -> Line {
    let found = heard.wait(until: .now + patience) { heard -> Line?? in
      if let line = heard.lines.dropFirst(count).first(where: { $0.value.map(isIt) ?? false }) {
        return line
      }
      return heard.hasEnded ? .some(nil) : nil
    }
    guard let line = found ?? nil else {
      throw TooLate(description: "\(what): not heard in \(lines.suffix(20).map(\.text))")
    }
    return line
  }

  /// Waits until the app shows tickets for the films in `tickets`, and images for those in
  /// `images`.
  @discardableResult
  func shows(
    after count: Int = 0, tickets: Set<Int>, images: Set<Int>? = nil
  ) throws -> Line {
    try line(after: count, "tickets \(tickets), images \(images ?? [])") { value in
      value.numbers("tickets") == tickets
        && (images == nil || value.numbers("images") == images)
    }
  }

  /// Waits for the confirmation of a typed command.
  @discardableResult
  func did(after count: Int = 0, _ action: String, _ movie: Int) throws -> Line {
    try line(after: count, "\(action) \(movie)") { value in
      value["action"] == .string(action) && value["movie"] == .integer(Int64(movie))
    }
  }
}

extension PropertyListValue {
  /// The whole numbers of an array under a key.
  func numbers(_ key: String) -> Set<Int>? {
    guard case .array(let values) = self[key] else { return nil }
    return Set(
      values.compactMap { value in if case .integer(let number) = value { Int(number) } else { nil }
      })
  }
}
