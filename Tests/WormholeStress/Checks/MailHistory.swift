/// The messages that were sent, their outcomes, and the check of the promises.
struct MailHistory {
  /// A message, from the view of its sender.
  private struct Letter {
    let sender: Int
    let receiver: String
    /// The message's position among all messages of its sender.
    let place: Int
    /// The kind with which the message was sent.
    let kind: String
    /// Whether the message was certainly sent.
    var isSent: Bool
    var isTakenBack = false
    /// Whether a cancellation was attempted, and not reported as too late.
    var mayBeTakenBack = false
    /// Whether the receiver has acknowledged the message.
    var isHandled = false
    /// The outcomes that were reported to the sender.
    var ends: Set<String> = []
    /// Whether sending was refused, so that the message must not arrive.
    var isRefused = false
    /// The start of sending.
    let begin: Int64
    /// The tokens of the batch.
    let batch: [String]
    var isOfBatch: Bool { batch.count > 1 }
  }

  private var letters: [String: Letter] = [:]
  private var places: [Int: Int] = [:]
  private var questions: Set<String> = []
  private var states = ToldHistory()
  private(set) var violations: [Violation] = []
  private var received: Set<String> = []
  private(set) var duplicates = 0

  var count: Int { letters.count }

  /// The member whose inbox was removed, and the time of the last removal.
  ///
  /// Messages that waited in the inbox are lost, and for up to a tenth of a second also messages of
  /// senders that have the inbox open.
  var lost: (name: String, until: Int64)?
  /// The time for which messages still go into a removed inbox, in nanoseconds.
  private static let openFor: Int64 = 150_000_000

  /// Whether the calls of all workers may fail.
  var mayFail = false

  mutating func add(_ call: MadeCall) {
    switch call.operation {
    case .send(let to, let tokens): note(call, to, tokens)
    case .sendFile(let to, let token): note(call, to, [token])
    case .cancel(let token):
      letters[token]?.mayBeTakenBack = call.result != .truth(false)
      switch call.result {
      case .truth(true): letters[token]?.isTakenBack = true
      case .truth(false), .refused: break
      // The message may have been cancelled without a report.
      default: letters[token]?.isSent = false
      }
    case .ask(_, let token): questions.insert(token)
    case .tell(let to, let token): states.add(token, to: to, call)
    default: break
    }
  }

  private mutating func note(_ call: MadeCall, _ to: String, _ tokens: [String]) {
    for token in tokens {
      let place = places[call.worker, default: 0]
      places[call.worker] = place + 1
      letters[token] = Letter(
        sender: call.worker, receiver: to, place: place,
        kind: Payload.kind(tokens[0]), isSent: call.result == .done,
        isRefused: call.result?.isRefusal == true, begin: call.begin, batch: tokens)
    }
  }

  /// A sequence of messages that keeps its order.
  private struct Line: Hashable {
    let sender: Int
    /// If each kind has a receiver of its own, each kind has its own order.
    let kind: String?
  }

  /// Adds the deliveries to one worker; by then, all calls of all workers are known.
  mutating func receive(_ entries: [Journal.Entry], as name: String) {
    let chooses = Plan.chooses(name)
    var last: [Line: Int] = [:]
    var done: Set<String> = []
    var here: Set<String> = []
    var asked: Set<String> = []
    // If calls of the worker fail, a message that cannot be claimed is overtaken, as promised. If
    // there is no space to record the progress of a batch, the batch is redelivered as a whole.
    var hasErrors = false
    for entry in entries {
      switch entry.event {
      case .life(_, let faults): hasErrors = mayFail || faults.contains("fail=")
      case .got(let token, _, let isRedelivered):
        guard let letter = letters[token] else {
          violations.append(Violation(.torn, "'\(token)' came to '\(name)', and nobody sent it"))
          continue
        }
        received.insert(token)
        check(token, letter, name, isRedelivered, isNew: here.insert(token).inserted)
        if done.contains(token) {
          violations.append(Violation(.twice, "'\(token)' came after it was acknowledged"))
        }
        // An overtaken message arrives later, even in the next process, whose calls no longer fail.
        guard !isRedelivered, !hasErrors else { continue }
        let line = Line(sender: letter.sender, kind: chooses ? letter.kind : nil)
        if let before = last[line], before > letter.place {
          violations.append(
            Violation(.order, "'\(token)' came to '\(name)' after what was sent later"))
        }
        last[line] = letter.place
      case .heard(let token, let from): violations += states.hear(token, from: from, as: name)
      case .told(let token, let end): letters[token]?.ends.insert(end)
      case .acknowledged(let token, isSure: true):
        letters[token]?.isHandled = true
        if !hasErrors || letters[token]?.isOfBatch != true { done.insert(token) }
      case .asked(let token):
        if !questions.contains(token) {
          violations.append(Violation(.torn, "nobody has asked '\(token)'"))
        } else if !asked.insert(token).inserted {
          violations.append(Violation(.twice, "'\(token)' was asked twice"))
        }
      case .broken(let what): violations.append(Violation(.torn, what))
      default: break
      }
    }
  }

  private mutating func check(
    _ token: String, _ letter: Letter, _ name: String, _ isRedelivered: Bool, isNew: Bool
  ) {
    if letter.receiver != name {
      violations.append(Violation(.torn, "'\(token)' came to '\(name)' in place of another"))
    }
    if letter.isTakenBack {
      violations.append(Violation(.twice, "'\(token)' came, and had been taken back"))
    }
    if letter.isRefused {
      violations.append(Violation(.order, "'\(token)' came, and was refused when it was sent"))
    }
    guard !isNew else { return }
    duplicates += 1
    if !isRedelivered {
      violations.append(Violation(.twice, "'\(token)' came twice and did not say so"))
    }
  }

  private func isGone(_ letter: Letter) -> Bool {
    lost.map { letter.receiver == $0.name && letter.begin <= $0.until + Self.openFor } ?? false
  }

  /// Checks that every sent message has arrived in the end, and that each sender that requested the
  /// outcome received the true one.
  mutating func close() {
    violations += states.close()
    for (token, letter) in letters where letter.batch.first == token {
      violations += untruths(token, letter)
    }
    for (token, letter) in letters
    where letter.isSent && !letter.isTakenBack && !received.contains(token) && !isGone(letter) {
      violations.append(Violation(.lost, "'\(token)' for '\(letter.receiver)' never came"))
    }
  }

  private func untruths(_ token: String, _ letter: Letter) -> [Violation] {
    if letter.ends.isEmpty {
      guard Payload.isFollowed(token), letter.isSent, !isGone(letter) else { return [] }
      return [Violation(.untrue, "nobody was told how '\(token)' to '\(letter.receiver)' ended")]
    }
    var truth: Set<String> = []
    if letter.batch.allSatisfy(received.contains), !letter.isTakenBack { truth.insert("delivered") }
    if letter.mayBeTakenBack, !letter.isHandled { truth.insert("cancelled") }
    guard letter.ends.count > 1 || !letter.ends.isSubset(of: truth) else { return [] }
    let ends = letter.ends.sorted().joined(separator: " and ")
    return [
      Violation(.untrue, "'\(token)' to '\(letter.receiver)' was told to have been \(ends)")
    ]
  }
}
