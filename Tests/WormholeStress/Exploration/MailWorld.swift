import WormholeContainerStorage
import Wormhole

/// A model of one inbox around the library's ``MailboxMachine``: the smallest surroundings that
/// give the machine every order of its inputs.
///
/// Messages appear and are cancelled, notices arrive or are lost in a lull, and the receiving
/// process may die between two steps. A listing reads one name per step, in any order, so a listing
/// may show a message without the message before. Each file contains one message, and each rename
/// is one step.
///
/// The model omits the steps that schedules and sweeps run with the library itself: the progress of
/// a batch, redelivery marks, outcomes, dead letters, and deaths of senders.
struct MailWorld: ModelWorld {
  struct Rules {
    /// The number of messages that each sender sends.
    var messages = [2, 1]
    /// The files that are cancelled, by number.
    var cancelled = [0, 1]
    /// The number of deaths of the receiver.
    var deaths = 2
    /// The number of failures of messages.
    var failures = 0
    var attempts = 3
    var receivers = 1
    /// Whether each receiver wants the messages of a single sender.
    var chooses = false
    /// Whether the receiver is notified of arrivals, and lists the inbox no more than necessary.
    var hears = false
    var mutant: Mutants?
    /// Whether the receiver mistakes the notices after a lull for all arrivals.
    var forgetsLulls: Bool { mutant == .noEndOfLull }
    /// Several receivers of the same kind share its messages in any order.
    var hasOrder: Bool { receivers == 1 || chooses }
  }

  enum Place: Hashable {
    case nowhere, inbox
    case claimed(Int)
    /// Handled, dead-lettered or cancelled: the machine does not distinguish these.
    case settled
  }

  struct File: Hashable {
    let sender: Int
    var name: MessageName?
    var place = Place.nowhere
  }

  struct State: Hashable {
    var files: [File]
    /// The files that each sender still has to send.
    var senders: [[Int]]
    /// The files that are still to be cancelled.
    var cancellations: [Int]
    var receiver: Receiver
    /// The clock advances only when a sender stamps a file: only the order of stamps matters.
    var clock: Int64 = 1
    var deaths: Int
    var failures: Int
    /// The arrivals of which the receiver is still to be notified, in order.
    var events: [MessageName] = []
    var isLull = false
    var violation: Broken?
  }

  /// The broken promise.
  enum Broken: String {
    case order = "a message is claimed before an earlier message"
    case spins = "a receiver finds a message again and again, and does not claim it"
    case asked = "the machine asks for what was never offered"
  }

  let rules: Rules
  var state: State

  init(_ rules: Rules) {
    self.rules = rules
    var (files, senders) = ([File](), [[Int]]())
    for (number, count) in rules.messages.enumerated() {
      senders.append(Array(files.count..<(files.count + count)))
      files += Array(repeating: File(sender: number), count: count)
    }
    state = State(
      files: files, senders: senders, cancellations: rules.cancelled, receiver: Receiver(rules),
      deaths: rules.deaths, failures: rules.failures)
  }

  static func == (left: MailWorld, right: MailWorld) -> Bool { left.state == right.state }
  func hash(into hasher: inout Hasher) { hasher.combine(state) }

  var violation: String? { state.violation?.rawValue }

  /// If the receiver is notified and forgets a message, no process has a step left, and the run is
  /// not over: the search reports such a state.
  var isOver: Bool {
    state.files.allSatisfy { $0.place == .settled } && state.cancellations.isEmpty
      && state.receiver.doing.allSatisfy { $0 == .nothing }
  }

  var verdict: String? { nil }

  // MARK: Steps

  mutating func step(_ choices: inout Choices) {
    let (receivers, senders) = (rules.receivers, state.senders.count)
    let others = receivers + senders + state.cancellations.count
    switch choices.pick(others + (rules.hears ? 2 : 1)) {
    case let turn where turn < receivers: receive(turn, &choices)
    case let turn where turn < receivers + senders: send(turn - receivers, &choices)
    case let turn where turn < others: cancel(turn - receivers - senders, &choices)
    case others: die(&choices)
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
    guard let file = state.senders[number].first else { return }
    guard let name = state.files[file].name else {
      choices.tell("sender \(number) stamps file \(file)")
      state.files[file].name = MessageName(
        isUrgent: false, MessageStamp(epoch: 1, nanoseconds: state.clock), wantsReceipt: true,
        count: 1, id: "f\(file)", from: "s\(number)")
      state.clock += 1
      return
    }
    choices.tell("sender \(number) places file \(file)")
    state.files[file].place = .inbox
    if rules.hears, !state.isLull { state.events.append(name) }
    state.senders[number].removeFirst()
  }

  private mutating func cancel(_ number: Int, _ choices: inout Choices) {
    let file = state.cancellations.remove(at: number)
    choices.tell("file \(file) is cancelled")
    // A cancellation before the placement, or after the claim, has no effect.
    if state.files[file].place == .inbox { state.files[file].place = .settled }
  }
}
