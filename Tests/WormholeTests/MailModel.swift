import SharedContainer
import TestSupport

@testable import Wormhole

/// A world of one inbox in memory, in which two senders, two cancellers and a receiver take turns
/// step by step, and any of them may die at any step.
///
/// The receiver runs the very ``MailboxMachine`` and ``BatchSlots`` that the executor runs. A
/// listing looks at one name a step, in any order, so it may show a message without the one before.
struct MailModel {
  struct Rules {
    var deaths = 3
    var attempts = 2
    var receivers = 1
    var readsBeforeClaim = false
    var trustsListings = false
    var hasProgress = true
    var cancelsByPuttingBack = false
    /// Kills whoever handles it; its file and place.
    var poison: Piece?
  }

  struct Piece: Hashable {
    let file: Int
    let index: Int
  }

  enum Place: Equatable { case nowhere, inbox, away, claimed(Int), ended }

  struct File {
    let count: Int
    let sender: Int
    var name: MessageName?
    var place = Place.nowhere
    var isReturned = false
    /// The progress file's record, which outlives the receiver.
    var record: [UInt8]?
  }

  struct Sender {
    var files: [Int]
    var step = 0
  }

  struct Canceller {
    let file: Int
    var step = 0
    var isOver = false
  }

  /// What one receiver of the process is in the middle of.
  enum Doing {
    case nothing
    case listing(before: MessageStamp, left: [Int], seen: [MessageName])
    case claiming(Int)
    case reading(Int, attempt: Int)
    case handing(Int, attempt: Int, slots: BatchSlots, index: Int?, step: Int, marked: Bool)
  }

  struct Receiver {
    var machine: MailboxMachine
    var doing: [Doing]
  }

  let rules: Rules
  var files: [File]
  var senders = [Sender(files: [0, 1]), Sender(files: [2, 3])]
  var cancellers = [Canceller(file: 1), Canceller(file: 2)]
  var receiver: Receiver
  var clock: Int64 = 1
  var deathsLeft: Int
  var handled: [Piece: Int] = [:]
  var done: Set<Piece> = []
  var dead: Set<Piece> = []
  var told: Set<Int> = []
  /// What was broken, if anything.
  var violation: String?

  init(_ rules: Rules) {
    self.rules = rules
    deathsLeft = rules.deaths
    files = [1, 3, 1, 2].enumerated().map { File(count: $0.element, sender: $0.offset / 2) }
    receiver = Self.fresh(rules)
  }

  private static func fresh(_ rules: Rules) -> Receiver {
    var settings = MailboxMachine.Settings()
    settings.attempts = rules.attempts
    settings.firstDelay = 1
    settings.trustsListings = rules.trustsListings
    var machine = MailboxMachine(settings)
    for number in 1...rules.receivers { machine.add(number, kinds: nil) }
    return Receiver(machine: machine, doing: Array(repeating: .nothing, count: rules.receivers))
  }

  /// Whether nobody has anything left to do.
  var isOver: Bool {
    senders.allSatisfy { $0.files.isEmpty } && cancellers.allSatisfy(\.isOver)
      && files.allSatisfy { [.nowhere, .ended].contains($0.place) }
      && receiver.doing.allSatisfy { if case .nothing = $0 { true } else { false } }
  }

  // MARK: Steps

  mutating func step(_ random: inout SeededRandom) {
    clock += 1
    switch Int.random(in: 0..<(4 + 3 * rules.receivers), using: &random) {
    case 0, 1: send(Int.random(in: 0..<2, using: &random), &random)
    case 2: cancel(Int.random(in: 0..<2, using: &random), &random)
    case 3:
      guard deathsLeft > 0, Int.random(in: 0..<8, using: &random) == 0 else { return }
      die()
    case let turn: receive((turn - 4) / 3, &random)
    }
  }

  private mutating func die() {
    deathsLeft -= 1
    receiver = Self.fresh(rules)
  }

  private mutating func send(_ number: Int, _ random: inout SeededRandom) {
    guard let file = senders[number].files.first else { return }
    switch senders[number].step {
    case 0:
      files[file].name = MessageName(
        isUrgent: false, MessageStamp(epoch: 1, nanoseconds: clock), wantsReceipt: true,
        count: files[file].count, id: "f\(file)", from: "s\(number)")
    case 1: files[file].place = .inbox
    default: files[file].isReturned = true
    }
    senders[number].step += 1
    if senders[number].step == 3 {
      senders[number].step = 0
      senders[number].files.removeFirst()
    }
    // A sender may die: what it has not put there never comes.
    if Int.random(in: 0..<40, using: &random) == 0 { senders[number].files = [] }
  }

  private mutating func cancel(_ number: Int, _ random: inout SeededRandom) {
    guard !cancellers[number].isOver, Int.random(in: 0..<6, using: &random) == 0 else { return }
    let file = cancellers[number].file
    // The step between is where it dies, and the message with it.
    if rules.cancelsByPuttingBack, cancellers[number].step == 0 {
      guard files[file].place == .inbox else { return cancellers[number].isOver = true }
      files[file].place = .away
      cancellers[number].step = 1
      if Int.random(in: 0..<2, using: &random) == 0 { cancellers[number].isOver = true }
      return
    }
    if files[file].place == .away { files[file].place = .inbox }
    cancellers[number].isOver = true
    guard files[file].place == .inbox else { return }
    files[file].place = .ended
    told.insert(file)
  }

  // MARK: The receiver

  private mutating func receive(_ thread: Int, _ random: inout SeededRandom) {
    switch receiver.doing[thread] {
    case .nothing: ask(thread, &random)
    case .listing(let start, var left, var seen):
      guard let file = left.popLast() else {
        receiver.machine.listed(seen, before: start)
        return receiver.doing[thread] = .nothing
      }
      if files[file].place == .inbox { seen.append(files[file].name!) }
      receiver.doing[thread] = .listing(before: start, left: left, seen: seen)
    case .claiming(let file):
      // What was read before does not know that the message is gone meanwhile.
      guard files[file].place == .inbox || rules.readsBeforeClaim else {
        receiver.machine.missing()
        return receiver.doing[thread] = .nothing
      }
      if files[file].place == .inbox { files[file].place = .claimed(1) }
      receiver.doing[thread] = .reading(file, attempt: 1)
    case .reading(let file, let attempt): open(file, attempt, thread)
    case .handing(let file, let attempt, let slots, let index, let step, let marked):
      hand(thread, file, attempt, slots, index, step, marked, &random)
    }
  }

  private mutating func ask(_ thread: Int, _ random: inout SeededRandom) {
    // Something may have come: as inotify would tell.
    receiver.machine.signal(urgent: false)
    switch receiver.machine.next(for: thread + 1, now: clock) {
    case .recover:
      let found = files.compactMap { file -> MailboxMachine.Claimed? in
        guard case .claimed(let attempt) = file.place else { return nil }
        return .init(claimed: ClaimedName(file.name!, attempt: attempt), kind: "n")
      }
      receiver.machine.recovered(found)
    case .list:
      receiver.doing[thread] = .listing(
        before: MessageStamp(epoch: 1, nanoseconds: clock),
        left: Array(files.indices).shuffled(using: &random), seen: [])
    case .claim(let name): claim(number(of: name), thread)
    case .reclaim(let old): reclaim(number(of: old.name), old.attempt, thread)
    case .peek, .again: violation = "asked for what was never offered"
    case .yield, .wait: break
    }
  }

  private mutating func claim(_ file: Int, _ thread: Int) {
    guard rules.readsBeforeClaim else { return receiver.doing[thread] = .claiming(file) }
    guard files[file].place == .inbox else { return receiver.machine.missing() }
    receiver.doing[thread] = .claiming(file)
  }

  private func number(of name: MessageName) -> Int { files.firstIndex { $0.name == name }! }

  private mutating func reclaim(_ file: Int, _ attempt: Int, _ thread: Int) {
    let isKnown = files[file].record != nil
    if attempt >= rules.attempts, !isKnown {
      for index in 0..<files[file].count { dead.insert(Piece(file: file, index: index)) }
      files[file].place = .ended
      return receiver.machine.finished()
    }
    files[file].place = .claimed(attempt + 1)
    receiver.doing[thread] = .reading(file, attempt: attempt + 1)
  }

  private mutating func open(_ file: Int, _ attempt: Int, _ thread: Int) {
    let count = files[file].count
    var slots = BatchSlots(count: count)
    if count > 1, rules.hasProgress {
      slots = files[file].record.map { BatchSlots($0) } ?? slots
      files[file].record = slots.all
    }
    receiver.doing[thread] = .handing(
      file, attempt: attempt, slots: slots, index: nil, step: 0, marked: false)
  }

  private mutating func save(_ file: Int, _ slots: BatchSlots) {
    if files[file].count > 1, rules.hasProgress { files[file].record = slots.all }
  }

  private mutating func hand(
    _ thread: Int, _ file: Int, _ attempt: Int, _ old: BatchSlots, _ last: Int?, _ step: Int,
    _ marked: Bool, _ random: inout SeededRandom
  ) {
    var (slots, index, isMarked, next) = (old, last, marked, step + 1)
    let isBatch = files[file].count > 1
    switch step {
    case 0:  // The next message begins, or the file ends.
      guard let taken = slots.takeNext() else {
        files[file].place = .ended
        receiver.machine.finished()
        return receiver.doing[thread] = .nothing
      }
      if isBatch, slots.attempts(taken) >= rules.attempts {
        dead.insert(Piece(file: file, index: taken))
        _ = slots.finish(taken, givenUp: true)
        next = 0
      } else {
        index = taken
        let begun = slots.begin(taken)
        isMarked = isBatch && rules.hasProgress ? begun > 1 : attempt > 1
      }
      save(file, slots)
    case 1:
      let piece = Piece(file: file, index: index!)
      deliver(piece, isMarked)
      if piece == rules.poison {
        deathsLeft += 1
        return die()
      }
      // A single message may fail instead, and come again.
      if !isBatch, Int.random(in: 0..<6, using: &random) == 0 {
        let claimed = ClaimedName(files[file].name!, attempt: attempt)
        let verdict = receiver.machine.failed(claimed, kind: "n", attempt: attempt, now: clock)
        if verdict == .giveUp {
          dead.insert(piece)
          files[file].place = .ended
          receiver.machine.finished()
        }
        return receiver.doing[thread] = .nothing
      }
    default:
      done.insert(Piece(file: file, index: index!))
      _ = slots.finish(index!)
      save(file, slots)
      next = 0
    }
    receiver.doing[thread] = .handing(
      file, attempt: attempt, slots: slots, index: index, step: next, marked: isMarked)
  }

  // MARK: What must hold

  private mutating func deliver(_ piece: Piece, _ isMarked: Bool) {
    let before = handled[piece, default: 0]
    if told.contains(piece.file) { violation = "cancelled, and handled all the same" }
    if before > 0, !isMarked { violation = "a duplicate is not marked" }
    if before == 0, rules.receivers == 1, let earlier = firstMissing(before: piece) {
      violation = "\(piece) came before \(earlier)"
    }
    if done.contains(piece), files[piece.file].count > 1 { violation = "done, and came again" }
    handled[piece] = before + 1
  }

  /// A message of the same sender that should have come before.
  private func firstMissing(before piece: Piece) -> Piece? {
    for file in files.indices
    where files[file].sender == files[piece.file].sender && file <= piece.file {
      for index in 0..<files[file].count {
        let other = Piece(file: file, index: index)
        if other == piece { return nil }
        if handled[other] == nil, !told.contains(file), !dead.contains(other) { return other }
      }
    }
    return nil
  }

  /// What is wrong with how it all ended.
  func verdict() -> String? {
    for file in files.indices where files[file].isReturned {
      guard files[file].place == .ended else { return "file \(file) is \(files[file].place)" }
      for index in 0..<files[file].count {
        let piece = Piece(file: file, index: index)
        if handled[piece] == nil, !told.contains(file), !dead.contains(piece) {
          return "\(piece) is lost"
        }
      }
    }
    return nil
  }
}

extension BatchSlots {
  fileprivate var all: [UInt8] { (0..<count).map { self[$0] } }
}
