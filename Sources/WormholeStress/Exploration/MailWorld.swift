import SharedContainer
import Wormhole

/// A world of one inbox, in which senders, cancellers and a receiver take turns step by step, and
/// any of them may die between two.
///
/// The receiver runs the very ``MailboxMachine`` and ``BatchSlots`` that the executor runs. A
/// listing looks at one name a step, in any order, so it may show a message without the one before.
/// A message that is given up has two names for a moment, and ends by one rename, as every message
/// does: into the receipts of its sender, which say how.
struct MailWorld: ModelWorld {
  struct Rules {
    /// How many messages each file holds, for each sender in turn.
    var files: [[Int]] = [[1, 2], [1]]
    /// Which files are taken back, by number.
    var cancelled = [0, 1]
    /// How often the receiver dies.
    var deaths = 1
    /// How many senders do.
    var senderDeaths = 1
    /// How often a single message fails.
    var failures = 0
    var attempts = 3
    var receivers = 1
    /// Whether each receiver wants what one of the senders sends.
    var chooses = false
    /// Whether the receiver hears of what comes, and lists the inbox no more than it must.
    var hears = false
    /// Ends the receiver whenever that handles it.
    var poison: Piece?
    var mutants: Mutants = []
    /// Takes what it hears of after a lull for all that came.
    var forgetsLulls: Bool { mutants.contains(.noEndOfLull) }
  }

  struct Piece: Hashable {
    let file: Int
    let index: Int
  }

  enum Place: Hashable {
    case nowhere, inbox
    /// In the hand of whoever takes it back, where that is done by putting the rest back.
    case away
    case claimed(Int)
    /// With what the receipt says of it.
    case ended(End)
  }

  enum End: Hashable { case handled, cancelled, dead }

  struct File: Hashable {
    let count: Int
    let sender: Int
    var name: MessageName?
    var place = Place.nowhere
    var isReturned = false
    /// Whether it has a second name among the dead letters.
    var isBuried = false
    /// The progress file's record, which outlives the receiver.
    var record: [UInt8]?
  }

  struct Sender: Hashable {
    var files: [Int]
    var step = 0
  }

  struct Canceller: Hashable {
    let file: Int
    var step = 0
    var isOver = false
  }

  struct State: Hashable {
    var files: [File]
    var senders: [Sender]
    var cancellers: [Canceller]
    var receiver: Receiver
    /// Goes on only when somebody stamps something: nothing but the order of stamps counts.
    var clock: Int64 = 1
    var deaths: Int
    var senderDeaths: Int
    var failures: Int
    /// How often each message was handled, and whether it was acknowledged or given up.
    var handled: [Piece: Int] = [:]
    var done: Set<Piece> = []
    var dead: Set<Piece> = []
    var told: Set<Int> = []
    /// What has come and is to be heard of, in that order.
    var events: [MessageName] = []
    var isLull = false
    var violation: Broken?
  }

  /// Which promise is broken.
  enum Broken: String {
    case cancelled = "what was taken back is handled all the same"
    case unmarked = "a message comes twice and does not say so"
    case order = "a message comes before one that was sent earlier"
    case again = "what was acknowledged comes again"
    case ends = "a message has two ends"
    case spins = "a receiver looks at a message again and again, and does not take it"
    case asked = "the machine asks for what was never offered"
  }

  let rules: Rules
  var state: State

  init(_ rules: Rules) {
    self.rules = rules
    var (files, senders) = ([File](), [Sender]())
    for (number, counts) in rules.files.enumerated() {
      senders.append(Sender(files: Array(files.count..<(files.count + counts.count))))
      files += counts.map { File(count: $0, sender: number) }
    }
    state = State(
      files: files, senders: senders, cancellers: rules.cancelled.map { Canceller(file: $0) },
      receiver: Receiver(rules), deaths: rules.deaths, senderDeaths: rules.senderDeaths,
      failures: rules.failures)
  }

  static func == (left: MailWorld, right: MailWorld) -> Bool { left.state == right.state }
  func hash(into hasher: inout Hasher) { hasher.combine(state) }

  var violation: String? { state.violation?.rawValue }
  // Power is cut under messages on real file systems only.
  var cuts: (count: Int, violation: String?) { (0, nil) }

  var isOver: Bool {
    state.senders.allSatisfy { $0.files.isEmpty } && state.cancellers.allSatisfy(\.isOver)
      && state.files.allSatisfy(\.isAtEnd) && state.receiver.doing.allSatisfy { $0 == .nothing }
  }

  var verdict: String? {
    if let poison = rules.poison, let other = state.dead.first(where: { $0 != poison }) {
      return "message \(other.index) of file \(other.file) is given up for what another does"
    }
    for (number, file) in state.files.enumerated() where file.isReturned {
      guard case .ended(let end) = file.place else {
        return "file \(number) is lost"
      }
      for index in 0..<file.count {
        let piece = Piece(file: number, index: index)
        let isThere = state.handled[piece] != nil || state.dead.contains(piece)
        if !isThere, end != .cancelled { return "message \(index) of file \(number) is lost" }
      }
      if (end == .cancelled) != state.told.contains(number), end == .cancelled {
        return "file \(number) was taken back, and nobody was told"
      }
    }
    return nil
  }

  // MARK: Steps

  mutating func step(_ choices: inout Choices) {
    let receivers = rules.receivers
    var turns = state.senders.count + state.cancellers.count + receivers + 1
    if rules.hears { turns += 1 }
    switch choices.pick(turns) {
    case let turn where turn < receivers: receive(turn, &choices)
    case let turn where turn < receivers + state.senders.count: send(turn - receivers, &choices)
    case let turn where turn < turns - (rules.hears ? 2 : 1):
      cancel(turn - receivers - state.senders.count, &choices)
    case turns - 1: die(&choices)
    default: hear(&choices)
    }
  }

  private mutating func die(_ choices: inout Choices) {
    guard state.deaths > 0 else { return }
    choices.tell("the receiver dies, and begins again")
    state.deaths -= 1
    state.receiver = Receiver(rules)
    state.events = []
    state.isLull = false
  }

  private mutating func hear(_ choices: inout Choices) {
    if choices.pick(), !state.isLull {
      choices.tell("a lull begins")
      state.isLull = true
      if !rules.forgetsLulls { state.receiver.machine.loseTrack() }
    } else if !state.events.isEmpty {
      let name = state.events.removeFirst()
      choices.tell("the receiver hears of \(name)")
      state.receiver.machine.arrived([name], now: 0)
    }
  }

  private mutating func send(_ number: Int, _ choices: inout Choices) {
    guard let file = state.senders[number].files.first else { return }
    if state.senderDeaths > 0, choices.pick() {
      choices.tell("sender \(number) dies")
      state.senderDeaths -= 1
      state.senders[number] = Sender(files: [])
      return
    }
    choices.tell("sender \(number), file \(file), step \(state.senders[number].step)")
    state.senders[number].step += 1
    switch state.senders[number].step {
    case 1:
      state.files[file].name = MessageName(
        isUrgent: false, MessageStamp(epoch: 1, nanoseconds: state.clock), wantsReceipt: true,
        count: state.files[file].count, id: "f\(file)", from: "s\(number)")
      state.clock += 1
    case 2:
      state.files[file].place = .inbox
      if rules.hears, !state.isLull { state.events.append(state.files[file].name!) }
    default:
      state.files[file].isReturned = true
      state.senders[number].step = 0
      state.senders[number].files.removeFirst()
    }
  }

  private mutating func cancel(_ number: Int, _ choices: inout Choices) {
    guard !state.cancellers[number].isOver else { return }
    let file = state.cancellers[number].file
    choices.tell("file \(file) is taken back")
    // The step between is where it dies, and the message with it.
    if rules.mutants.contains(.cancelByPuttingBack), state.cancellers[number].step == 0 {
      guard state.files[file].place == .inbox else {
        return state.cancellers[number].isOver = true
      }
      state.files[file].place = .away
      state.cancellers[number].step = 1
      state.cancellers[number].isOver = choices.pick()
      return
    }
    if state.files[file].place == .away { state.files[file].place = .inbox }
    state.cancellers[number].isOver = true
    guard state.files[file].place == .inbox else { return }
    end(file, .cancelled)
    state.told.insert(file)
  }

  /// One rename, which exactly one of those who try succeeds in.
  mutating func end(_ file: Int, _ end: End) {
    if case .ended = state.files[file].place { state.violation = .ends }
    state.files[file].place = .ended(end)
  }
}

extension MailWorld.File {
  var isAtEnd: Bool {
    switch place {
    // Whoever has taken it away may have died.
    case .nowhere, .ended, .away: true
    default: false
    }
  }
}
