import Dispatch
import Observation
import WormholeCinemaTime
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The app of one side, as the main queue sees it: the content of the screen, and the typed
/// commands.
@MainActor
final class RunningApp {
  private let side: any Side
  private let screen: Screen
  private let output: Output
  /// The text below the tickets: the result of the last command.
  private var message = ""
  private let idle: Duration?
  private var selected: Movie?
  private var alone: Movie?

  init(_ invocation: Invocation, _ screen: Screen) throws {
    idle = try invocation.seconds(.idle)
    self.screen = screen
    output = invocation.output
    let change = Monitor<Action?>(nil)
    let changed: @Sendable () -> Void = { change.withLock { $0 }?.perform() }
    side =
      try invocation.has(.sample)
      ? SampleSide(invocation, changed: changed) : OfficeSide(invocation, changed: changed)
    change.withLock { change in
      change = Action { [weak self] in
        DispatchQueue.main.async { MainActor.assumeIsolated { self?.redraw() } }
      }
    }
    try screen.open()
    redrawTracking()
    try listen()
    if idle != nil { endWhenIdle() }
    if screen.isFeed { try endWithReader() }
  }

  // MARK: Showing

  /// Draws, and draws again when a displayed value changes.
  private func redrawTracking() {
    withObservationTracking {
      redraw()
    } onChange: { [weak self] in
      DispatchQueue.main.async { MainActor.assumeIsolated { self?.redrawTracking() } }
    }
  }

  private func redraw() {
    var view = side.view(message)
    (view.selected, view.alone) = (selected?.id, alone?.id)
    do {
      try screen.show(view)
    } catch {
      end(with: error)
    }
  }

  // MARK: Doing

  /// Reads typed lines on a thread of its own, and performs their commands on the main queue.
  private func listen() throws {
    try naming("read", "standard input") { () throws(Errno) in
      try Thread("keys") { [weak self, screen] in
        var typed = TypedInput(isTerminal: screen.isTerminal)
        // At the end of the input the app continues; the process that started it may have provided
        // no input.
        while let bytes = try? StandardStream.input.read(), !bytes.isEmpty {
          let lines = typed.lines(adding: bytes)
          let (prompt, hasEnded) = (typed.prompt, typed.hasEnded)
          DispatchQueue.main.async {
            MainActor.assumeIsolated { self?.take(lines, prompt, hasEnded) }
          }
        }
      }.detach()
    }
  }

  private func take(_ lines: [String], _ prompt: String, _ hasEnded: Bool) {
    for line in lines where !line.isEmpty || screen.isTerminal { perform(line) }
    if hasEnded { quit() }
    screen.prompt = prompt
    if screen.isTerminal || screen.isFeed { redraw() }
  }

  private func perform(_ line: String) {
    let words = line.split(separator: " ").map(String.init)
    alone = nil
    do {
      switch (words.first, words.dropFirst().first, words.count) {
      case ("quit", nil, _): quit()
      case ("help", nil, _): message = Self.help
      case ("up", nil, _): select(-1)
      case ("down", nil, _): select(1)
      case ("left", nil, _), ("right", nil, _): break
      case (nil, nil, 0): alone = selected
      case ("show", let word?, 2):
        guard let movie = Movie.find(try number(word)) else { throw Refusal.unknownMovie(word) }
        alone = movie
      case (let word?, nil, 1) where Movie.find(typed: word) != nil:
        (selected, alone) = (Movie.find(typed: word), Movie.find(typed: word))
      case ("buy", nil, 1) where selected != nil: try tell("bought", side.buy(selected!.id))
      case ("return", nil, 1) where selected != nil:
        try tell("returned", side.giveBack(selected!.id))
      case ("buy", let id?, 2): try tell("bought", side.buy(number(id)))
      case ("return", let id?, 2): try tell("returned", side.giveBack(number(id)))
      default:
        throw Failure.usage(
          "cannot do '\(line)': type 'buy ID', 'return ID' or 'quit'; 'help' tells more")
      }
    } catch is ClosedPipe {
      end(with: ClosedPipe())
    } catch {
      let failure = Failure(error)
      message = failure.sentence
      if !screen.isTerminal { output.tell(failure) }
    }
  }

  private func number(_ word: String) throws(Refusal) -> Movie.ID {
    guard let id = Movie.find(typed: word)?.id ?? Movie.ID(word) else { throw .unknownMovie(word) }
    return id
  }

  private static let help =
    "arrows select; Enter shows the film and its code; buy N, return N, show N, quit"

  private func select(_ step: Int) {
    let place = selected.map { $0.place - 1 + step } ?? (step > 0 ? 0 : Movie.all.count - 1)
    selected = Movie.all[(place + Movie.all.count) % Movie.all.count]
  }

  private func tell(_ action: String, _ ticket: Ticket) throws {
    message = "\(action): \(ticket.film?.title ?? "")"
    guard output.isJSON, !screen.isTerminal else { return }
    try output.write(ticket.object.merging(["action": .string(action)]) { $1 })
  }

  // MARK: Ending

  private func quit() -> Never {
    screen.close()
    side.stop()
    Processes.exitAtOnce(0)
  }

  private func end(with error: any Error) -> Never {
    screen.close()
    if error is ClosedPipe { Processes.exitAtOnce(ClosedPipe.status) }
    let failure = Failure(error)
    output.tell(failure)
    Processes.exitAtOnce(failure.status)
  }

  private func endWithReader() throws {
    try naming("watch", "standard output") { () throws(Errno) in
      try Thread("reader") {
        if (try? StandardStream.output.waitUntilBroken()) != nil {
          Processes.exitAtOnce(ClosedPipe.status)
        }
      }.detach()
    }
  }

  private func endWhenIdle() {
    guard let idle else { return }
    let left = idle - side.idle
    guard left > .zero else { quit() }
    DispatchQueue.main.asyncAfter(deadline: .now() + left / .seconds(1)) { [weak self] in
      MainActor.assumeIsolated { self?.endWhenIdle() }
    }
  }
}
