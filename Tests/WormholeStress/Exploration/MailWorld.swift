import WormholeContainerStorage
import Wormhole

/// A model of one inbox, in which senders, cancellers and a receiver take turns step by step; any
/// of them may die between two steps.
///
/// The receiver runs the same ``MailboxMachine`` and ``BatchSlots`` as the executor. A listing
/// reads one name per step, in any order, so a listing may show a message without the message
/// before. A dead-lettered message has two names for a moment. Like every message, it is settled by
/// one rename: into the receipts of its sender, where the receipt states the outcome.
///
/// Schedules run the executor itself, with a few messages, one receiver and two preemptions. The
/// model stays for listings that read one name after the other, for lost notices, two receivers
/// with different kinds, messages that kill their receiver, and deaths at any step: no schedule has
/// these.
struct MailWorld: ModelWorld {
  struct Rules {
    /// The number of messages in each file, for each sender in turn.
    var files: [[Int]] = [[1, 2], [1]]
    /// The files that are cancelled, by number.
    var cancelled = [0, 1]
    /// The number of deaths of the receiver.
    var deaths = 1
    /// The number of deaths of senders.
    var senderDeaths = 1
    /// The number of failures of single messages.
    var failures = 0
    var attempts = 3
    var receivers = 1
    /// Whether each receiver wants the messages of a single sender.
    var chooses = false
    /// Whether the receiver is notified of arrivals, and lists the inbox no more than necessary.
    var hears = false
    /// The message that ends the receiver whenever the receiver handles it.
    var poison: Piece?
    var mutant: Mutants?
    /// Whether the receiver mistakes the notices after a lull for all arrivals.
    var forgetsLulls: Bool { mutant == .noEndOfLull }
  }

  struct Piece: Hashable {
    let file: Int
    let index: Int
  }

  enum Place: Hashable {
    case nowhere, inbox
    case claimed(Int)
    /// Settled, with the outcome that the receipt states.
    case ended(End)
  }

  enum End: Hashable { case handled, cancelled, dead }

  struct File: Hashable {
    let count: Int
    let sender: Int
    var name: MessageName?
    var place = Place.nowhere
    var isReturned = false
    /// Whether the file has a second name among the dead letters.
    var isBuried = false
    /// The record in the progress file, which outlives the receiver.
    var record: [UInt8]?
  }

  struct Sender: Hashable {
    var files: [Int]
    var step = 0
  }

  struct Canceller: Hashable {
    let file: Int
    var isOver = false
  }

  struct State: Hashable {
    var files: [File]
    var senders: [Sender]
    var cancellers: [Canceller]
    var receiver: Receiver
    /// The clock advances only when a sender stamps a file: only the order of stamps matters.
    var clock: Int64 = 1
    var deaths: Int
    var senderDeaths: Int
    var failures: Int
    /// How often each message was handled, and whether the message was acknowledged or
    /// dead-lettered.
    var handled: [Piece: Int] = [:]
    var done: Set<Piece> = []
    var dead: Set<Piece> = []
    var told: Set<Int> = []
    /// The arrivals of which the receiver is still to be notified, in order.
    var events: [MessageName] = []
    var isLull = false
    var violation: Broken?
  }

  /// The broken promise.
  enum Broken: String {
    case cancelled = "a cancelled message is handled all the same"
    case unmarked = "a message is redelivered without a mark"
    case order = "a message arrives before an earlier message"
    case again = "an acknowledged message is redelivered"
    case ends = "a message has two outcomes"
    case spins = "a receiver finds a message again and again, and does not claim it"
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
    state.cancellers[number].isOver = true
    guard state.files[file].place == .inbox else { return }
    end(file, .cancelled)
    state.told.insert(file)
  }

  /// Settles a file by one rename, in which exactly one of the competing processes succeeds.
  mutating func end(_ file: Int, _ end: End) {
    if case .ended = state.files[file].place { state.violation = .ends }
    state.files[file].place = .ended(end)
  }
}

extension MailWorld.File {
  var isAtEnd: Bool {
    switch place {
    case .nowhere, .ended: true
    default: false
    }
  }
}
