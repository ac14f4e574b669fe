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
    case reading(Int, attempt: Int)
    case handing(Int, attempt: Int, slots: Slots, step: Int, isMarked: Bool)
    /// Dead-lettered: the file has its second name, and is about to lose the first.
    case burying(Int)
    /// Has ended a lull, and must still report the end.
    case resumed
  }

  /// Progress through a file, and the message that is being handled.
  struct Slots: Hashable {
    var slots: BatchSlots
    var index: Int?

    init(_ slots: BatchSlots) { self.slots = slots }

    var all: [UInt8] { (0..<slots.count).map { slots[$0] } }

    static func == (left: Slots, right: Slots) -> Bool {
      left.index == right.index && left.all == right.all
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(index)
      hasher.combine(all)
    }
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
    case .reading(let file, let attempt): open(file, attempt, thread, &choices)
    case .resumed:
      choices.tell("the end of the lull is told")
      state.receiver.machine.signal(urgent: !rules.forgetsLulls)
      state.receiver.doing[thread] = .nothing
    case .burying(let file):
      choices.tell("file \(file) is given up")
      end(file, .dead)
      finish(thread)
    case .handing(let file, let attempt, let slots, let step, let isMarked):
      hand(thread, file, attempt, slots, step, isMarked, &choices)
    }
  }

  private mutating func finish(_ thread: Int) {
    state.receiver.machine.finished(by: thread + 1)
    state.receiver.doing[thread] = .nothing
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

  /// Returns the kind of a file's messages: each sender has its own kind.
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
    state.files[file].place = .claimed(1)
    state.receiver.doing[thread] = .reading(file, attempt: 1)
  }

  private mutating func reclaim(_ file: Int, _ attempt: Int, _ thread: Int) {
    if attempt >= rules.attempts, state.files[file].record == nil {
      return bury(file, thread)
    }
    state.files[file].place = .claimed(attempt + 1)
    state.receiver.doing[thread] = .reading(file, attempt: attempt + 1)
  }

  private mutating func bury(_ file: Int, _ thread: Int) {
    state.files[file].isBuried = true
    for index in 0..<state.files[file].count {
      state.dead.insert(Piece(file: file, index: index))
    }
    state.receiver.doing[thread] = .burying(file)
  }

  private mutating func open(
    _ file: Int, _ attempt: Int, _ thread: Int, _ choices: inout Choices
  ) {
    choices.tell("receiver \(thread) reads file \(file)")
    let count = state.files[file].count
    var slots = BatchSlots(count: count)
    if count > 1 {
      slots = state.files[file].record.map { BatchSlots($0) } ?? slots
      state.files[file].record = (0..<count).map { slots[$0] }
    }
    state.receiver.doing[thread] = .handing(
      file, attempt: attempt, slots: Slots(slots), step: 0, isMarked: false)
  }

  private mutating func save(_ file: Int, _ slots: Slots) {
    if state.files[file].count > 1 { state.files[file].record = slots.all }
  }

  private mutating func hand(
    _ thread: Int, _ file: Int, _ attempt: Int, _ old: Slots, _ step: Int, _ wasMarked: Bool,
    _ choices: inout Choices
  ) {
    var (slots, isMarked, next) = (old, wasMarked, step + 1)
    let isBatch = state.files[file].count > 1
    switch step {
    case 0:  // Starts the next message, or ends the file.
      guard let taken = slots.slots.takeNext() else {
        choices.tell("file \(file) ends")
        end(file, .handled)
        return finish(thread)
      }
      choices.tell("message \(taken) of file \(file) begins")
      if isBatch, slots.slots.attempts(taken) >= rules.attempts {
        state.dead.insert(Piece(file: file, index: taken))
        _ = slots.slots.finish(taken, givenUp: true)
        next = 0
      } else {
        slots.index = taken
        let begun = slots.slots.begin(taken)
        isMarked = isBatch ? begun > 1 : attempt > 1
      }
      save(file, slots)
    case 1:
      let piece = Piece(file: file, index: slots.index!)
      choices.tell("message \(piece.index) of file \(file) is handled")
      deliver(piece, isMarked)
      if piece == rules.poison {
        choices.tell("which ends the receiver")
        state.receiver = Receiver(rules)
        return
      }
      // A single message may fail instead, and be redelivered.
      if !isBatch, state.failures > 0, choices.pick() {
        state.failures -= 1
        return fail(thread, file, attempt)
      }
    default:
      choices.tell("message \(slots.index!) of file \(file) is done")
      state.done.insert(Piece(file: file, index: slots.index!))
      _ = slots.slots.finish(slots.index!)
      save(file, slots)
      next = 0
    }
    state.receiver.doing[thread] = .handing(
      file, attempt: attempt, slots: slots, step: next, isMarked: isMarked)
  }

  private mutating func fail(_ thread: Int, _ file: Int, _ attempt: Int) {
    let claimed = ClaimedName(state.files[file].name!, attempt: attempt)
    state.receiver.doing[thread] = .nothing
    let verdict = state.receiver.machine.failed(
      claimed, kind: label(of: state.files[file]), attempt: attempt, by: thread + 1, now: 0)
    if verdict == .giveUp { bury(file, thread) }
  }

  // MARK: Invariants

  private mutating func deliver(_ piece: Piece, _ isMarked: Bool) {
    let before = state.handled[piece, default: 0]
    if state.told.contains(piece.file) { state.violation = .cancelled }
    if before > 0, !isMarked { state.violation = .unmarked }
    // Several receivers of the same kind share its messages in any order.
    let isInOrder = rules.receivers == 1 || rules.chooses
    if before == 0, isInOrder, comesTooEarly(piece) { state.violation = .order }
    if state.done.contains(piece), state.files[piece.file].count > 1 { state.violation = .again }
    // The checks distinguish only once and more than once.
    state.handled[piece] = min(before + 1, 2)
  }

  /// Returns whether an earlier message of the same sender is still missing.
  private func comesTooEarly(_ piece: Piece) -> Bool {
    for file in state.files.indices
    where state.files[file].sender == state.files[piece.file].sender && file <= piece.file {
      for index in 0..<state.files[file].count {
        let other = Piece(file: file, index: index)
        if other == piece { return false }
        let isMissing = state.handled[other] == nil && !state.dead.contains(other)
        if isMissing, !state.told.contains(file) { return true }
      }
    }
    return false
  }
}
