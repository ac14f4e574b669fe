import WormholeContainerStorage
import Wormhole

extension MailWorld {
  /// The receiving process: its state machine, and the current step of each receiver.
  struct Receiver: Hashable {
    var machine: MailboxMachine
    var doing: [Doing]
    /// The file that each receiver peeked at last, if the receiver wanted the file and did not take
    /// it.
    var passedUp: [Int?]

    init(_ rules: Rules) {
      var settings = MailboxMachine.Settings()
      settings.attempts = rules.attempts
      // A failed message is due at once: the length of the delay has no influence on the model.
      settings.firstDelay = 0
      settings.trustsListings = rules.mutant == .trustListing
      machine = MailboxMachine(settings)
      for number in 1...rules.receivers {
        machine.add(number, kinds: rules.chooses ? ["s\(number - 1)"] : nil)
      }
      doing = Array(repeating: .nothing, count: rules.receivers)
      passedUp = Array(repeating: nil, count: rules.receivers)
    }
  }

  enum Doing: Hashable {
    case nothing
    case listing(before: MessageStamp, left: Set<Int>, seen: [MessageName])
    /// Reads the kind of the message.
    case looking(Int)
    case claiming(Int)
    /// Has claimed the message, and will settle or fail it.
    case handling(Int, attempt: Int)
    /// Has ended a lull, and must still report the end.
    case resumed
  }

  mutating func receive(_ thread: Int, _ choices: inout Choices) {
    switch state.receiver.doing[thread] {
    case .nothing: ask(thread, &choices)
    case .listing(let start, var left, var seen):
      guard !left.isEmpty else {
        choices.tell("the listing is over: \(seen)")
        state.receiver.machine.listed(seen, before: start, listAgain: rules.hears ? .max : 0)
        return state.receiver.doing[thread] = .nothing
      }
      let file = left.sorted()[choices.pick(left.count)]
      left.remove(file)
      choices.tell("the listing comes to file \(file)")
      if state.files[file].place == .inbox { seen.append(state.files[file].name!) }
      // The order in which the listing saw the names does not matter.
      state.receiver.doing[thread] = .listing(before: start, left: left, seen: seen.sorted())
    case .looking(let file): look(file, thread, &choices)
    case .claiming(let file): claim(file, thread, &choices)
    case .handling(let file, let attempt): handle(file, attempt, thread, &choices)
    case .resumed:
      choices.tell("the end of the lull is told")
      state.receiver.machine.signal(urgent: !rules.forgetsLulls)
      state.receiver.doing[thread] = .nothing
    }
  }

  private mutating func ask(_ thread: Int, _ choices: inout Choices) {
    // A message may have arrived, as inotify would report.
    if !rules.hears { state.receiver.machine.signal(urgent: false) }
    let isHeard = rules.hears && (!state.isLull || rules.forgetsLulls)
    let action = state.receiver.machine.next(for: thread + 1, now: 0, isHeard: isHeard)
    choices.tell("receiver \(thread): \(action)")
    switch action {
    case .recover:
      let found = state.files.compactMap { file -> MailboxMachine.Leftover? in
        guard case .claimed(let attempt) = file.place else { return nil }
        return .init(claimed: ClaimedName(file.name!, attempt: attempt), kind: label(of: file))
      }
      state.receiver.machine.recovered(found)
    case .list:
      state.receiver.doing[thread] = .listing(
        before: MessageStamp(epoch: 1, nanoseconds: state.clock), left: Set(state.files.indices),
        seen: [])
    case .claim(let name): state.receiver.doing[thread] = .claiming(number(of: name))
    case .reclaim(let old): reclaim(number(of: old.name), old.attempt, thread)
    case .peek(let name): state.receiver.doing[thread] = .looking(number(of: name))
    case .again, .end: state.violation = .asked
    case .yield: break
    case .wait:
      guard state.isLull else { break }
      state.isLull = false
      state.receiver.doing[thread] = .resumed
    }
  }

  private func number(of name: MessageName) -> Int { state.files.firstIndex { $0.name == name }! }

  /// Returns the kind of a file's message: each sender has its own kind.
  private func label(of file: File) -> MessageLabel {
    MessageLabel(stringLiteral: "s\(file.sender)")
  }

  private mutating func look(_ file: Int, _ thread: Int, _ choices: inout Choices) {
    choices.tell("receiver \(thread) looks at file \(file)")
    let kind = state.files[file].place == .inbox ? label(of: state.files[file]) : nil
    let takes = state.receiver.machine.peeked(
      state.files[file].name!, kind: kind, by: thread + 1)
    state.receiver.doing[thread] = takes ? .claiming(file) : .nothing
    let passesUp = !takes && kind != nil && state.files[file].sender == thread
    if passesUp, state.receiver.passedUp[thread] == file { state.violation = .spins }
    state.receiver.passedUp[thread] = passesUp ? file : nil
  }

  private mutating func claim(_ file: Int, _ thread: Int, _ choices: inout Choices) {
    choices.tell("receiver \(thread) claims file \(file)")
    guard state.files[file].place == .inbox else {
      state.receiver.machine.missing(by: thread + 1)
      return state.receiver.doing[thread] = .nothing
    }
    if rules.hasOrder, isEarlierMissing(file) { state.violation = .order }
    state.files[file].place = .claimed(1)
    state.receiver.doing[thread] = .handling(file, attempt: 1)
  }

  /// Returns whether an earlier message of the same sender is not settled.
  private func isEarlierMissing(_ file: Int) -> Bool {
    let sender = state.files[file].sender
    return state.files[..<file].contains { $0.sender == sender && $0.place != .settled }
  }

  private mutating func reclaim(_ file: Int, _ attempt: Int, _ thread: Int) {
    // A settled message, or a message that another receiver handles, has another place.
    guard state.files[file].place == .claimed(attempt) else { return state.violation = .asked }
    state.files[file].place = .claimed(attempt + 1)
    state.receiver.doing[thread] = .handling(file, attempt: attempt + 1)
  }

  private mutating func handle(
    _ file: Int, _ attempt: Int, _ thread: Int, _ choices: inout Choices
  ) {
    state.receiver.doing[thread] = .nothing
    if state.failures > 0, choices.pick() {
      choices.tell("attempt \(attempt) of file \(file) fails")
      state.failures -= 1
      let claimed = ClaimedName(state.files[file].name!, attempt: attempt)
      let decision = state.receiver.machine.failed(
        claimed, kind: label(of: state.files[file]), attempt: attempt, by: thread + 1, now: 0)
      guard decision == .giveUp else { return }
    }
    choices.tell("file \(file) is settled")
    state.files[file].place = .settled
    state.receiver.machine.finished(by: thread + 1)
  }
}
