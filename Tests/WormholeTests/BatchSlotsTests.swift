import TestSupport
import TestTraits
import Testing

@testable import Wormhole

/// The progress of a batch in every order of outcomes, deaths and interruptions.
///
/// Only the bytes of the slots outlive a process, as in the record that `BatchProgress` stores.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct BatchSlotsTests {
  @Test func inEveryOrderOfDeathsEachMessageHasOneEnd() {
    let walk = StateWalk(from: ModelBatch())
    #expect(walk.violations == [])
    #expect(walk.count > 1500)
    #expect(walk.contains { $0.isOver && $0.dead.isEmpty })
    #expect(walk.contains { $0.isOver && $0.dead == [1] })
  }
}

/// A batch whose receiver dies or leaves at any moment, and its successors.
private struct ModelBatch: WalkedState {
  private struct Receiver: Hashable {
    var slots: BatchSlots
    /// The message that a handler has.
    var index: Int?

    var bytes: [UInt8] { (0..<slots.count).map { slots[$0] } }

    /// Each message ends before the next one begins, so the bytes determine the rest.
    static func == (left: Self, right: Self) -> Bool {
      left.index == right.index && left.bytes == right.bytes
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(index)
      hasher.combine(bytes)
    }
  }

  private static let count = 3
  private static let attempts = 2

  private var record = [UInt8](repeating: 0, count: ModelBatch.count)
  private var receiver: Receiver?
  private var deaths = 4
  private var interruptions = 2
  /// The attempts of each message that count.
  private var begun = [Int](repeating: 0, count: ModelBatch.count)
  private var seen: Set<Int> = []
  private var done: Set<Int> = []
  private(set) var dead: Set<Int> = []
  private(set) var isOver = false
  private(set) var violation: String?

  var successors: [ModelBatch] {
    guard !isOver, violation == nil else { return [] }
    var next: [ModelBatch] = []
    func move(_ isPossible: Bool, _ change: (inout ModelBatch) -> Void) {
      guard isPossible else { return }
      var batch = self
      change(&batch)
      next.append(batch)
    }
    move(receiver == nil) { $0.receiver = Receiver(slots: BatchSlots($0.record)) }
    move(receiver != nil && receiver?.index == nil) { $0.advance() }
    move(receiver != nil && deaths > 0) { batch in
      batch.deaths -= 1
      batch.receiver = nil
    }
    if let index = receiver?.index {
      move(true) { $0.finish(index, givenUp: false) }
      move(interruptions > 0) { $0.interrupt(index) }
    }
    return next
  }

  /// Gives the next message to a handler, or dead-letters the message after the last attempt.
  private mutating func advance() {
    guard var slots = receiver?.slots else { return }
    guard let index = slots.takeNext() else { return end(slots) }
    guard slots.attempts(index) < Self.attempts else {
      receiver?.slots = slots
      if begun[index] < Self.attempts { violation = "message \(index) is given up too early" }
      return finish(index, givenUp: true)
    }
    let isInterrupted = slots.isInterrupted(index)
    let attempt = slots.begin(index)
    begun[index] += 1
    if attempt != begun[index] { violation = "attempt \(begun[index]) has the number \(attempt)" }
    if !seen.insert(index).inserted, attempt == 1, !isInterrupted {
      violation = "message \(index) is redelivered without a mark"
    }
    receiver = Receiver(slots: slots, index: index)
    store()
  }

  private mutating func finish(_ index: Int, givenUp: Bool) {
    let isFirst = receiver?.slots.finish(index, givenUp: givenUp)
    let isNew = givenUp ? dead.insert(index).inserted : done.insert(index).inserted
    if isFirst != true || !isNew || !dead.isDisjoint(with: done) {
      violation = "message \(index) has two ends"
    }
    receiver?.index = nil
    store()
  }

  /// Ends the process while a handler has the message; the attempt does not count.
  private mutating func interrupt(_ index: Int) {
    interruptions -= 1
    begun[index] -= 1
    receiver?.slots.undo(index, isInterrupted: true)
    store()
    receiver = nil
  }

  private mutating func end(_ slots: BatchSlots) {
    isOver = true
    let isComplete = slots.unfinished == 0 && done.union(dead).count == Self.count
    if !isComplete { violation = "the batch ends without a message" }
    if slots.hasGivenUp == dead.isEmpty { violation = "the outcome of the batch is wrong" }
  }

  private mutating func store() {
    if let receiver { record = receiver.bytes }
  }
}
