internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists

/// A claim of a queue's message for another machine's workers.
///
/// The ID names the claim and not the message: a message that goes back and is lent again is
/// another job. A late end ends nothing.
package struct FlowJob: Hashable, Sendable {
  package let id: String
  let attempt: Int
  let isMarked: Bool

  private enum Key {
    static let id = "job"
    static let (attempt, isMarked) = (WorkedQueue.Key.attempt, WorkedQueue.Key.isMarked)
  }

  private static let (longestID, mostAttempts) = (64, 999)

  init(_ job: LentQueue.Job) { (id, attempt, isMarked) = (job.id, job.attempt, job.isMarked) }

  /// Nil for a list in another form: another machine may have written anything.
  init?(_ list: PropertyListValue?) {
    guard let id = list?[Key.id]?.stringValue, !id.isEmpty, id.utf8.count <= Self.longestID,
      let attempt = list?[Key.attempt]?.intValue, (1...Self.mostAttempts).contains(attempt)
    else { return nil }
    (self.id, self.attempt) = (id, attempt)
    isMarked = list?[Key.isMarked]?.boolValue ?? false
  }

  var propertyList: [String: PropertyListValue] {
    [
      Key.id: .string(id), Key.attempt: .integer(Int64(attempt)), Key.isMarked: .boolean(isMarked),
    ]
  }
}

extension LoanEnd {
  private enum Key { static let (end, reason, attempts) = ("end", "reason", "attempts") }

  var propertyList: [String: PropertyListValue] {
    switch self {
    case .acknowledged: [Key.end: "ok"]
    case .undone: [Key.end: "undone"]
    case .failed: [Key.end: "failed"]
    case .dead(let reason, let attempts):
      [
        Key.end: "dead", Key.reason: .string(reason), Key.attempts: .integer(Int64(attempts)),
      ]
    }
  }

  init?(_ list: PropertyListValue) {
    switch list[Key.end]?.stringValue {
    case "ok": self = .acknowledged
    case "undone": self = .undone
    case "failed": self = .failed
    case "dead":
      let attempts = list[Key.attempts]?.intValue ?? 1
      self = .dead(
        reason: list[Key.reason]?.stringValue ?? "", attempts: min(max(attempts, 1), 999))
    default: return nil
    }
  }
}
