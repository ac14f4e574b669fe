/// What was sent, what has come of it, and whether that is what was promised.
struct MailHistory {
  /// A message, as its sender knows it.
  private struct Letter {
    let sender: Int
    let receiver: String
    /// Its place among all that its sender has sent.
    let place: Int
    /// What kind of message it was sent as.
    let kind: String
    /// Whether it was sent for sure.
    var isSent: Bool
    var isTakenBack = false
    /// Whether somebody has tried to take it back, and was not told that it was too late.
    var mayBeTakenBack = false
    /// Whether its receiver has acknowledged it.
    var isHandled = false
    /// How it ended, as its sender was told.
    var ends: Set<String> = []
    /// Whether sending it was refused, so that it must not come.
    var isRefused = false
    /// When it was begun to be sent.
    let begin: Int64
    /// Those that were sent together.
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

  /// Whose inbox was removed, and when last: what waits there is gone, and for up to a tenth of a
  /// second also what is sent by those who have it open.
  var lost: (name: String, until: Int64)?
  /// For how long after the removal of an inbox messages go into it, in nanoseconds.
  private static let openFor: Int64 = 150_000_000

  /// Whether the calls of all may fail.
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
      // It may have been taken back, and nobody was told.
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

  /// What keeps its order.
  private struct Line: Hashable {
    let sender: Int
    /// Where each kind has a receiver of its own, it is in order for itself.
    let kind: String?
  }

  /// What has come to one worker; all calls of all workers are known by then.
  mutating func receive(_ entries: [Journal.Entry], as name: String) {
    let chooses = Plan.chooses(name)
    var last: [Line: Int] = [:]
    var done: Set<String> = []
    var here: Set<String> = []
    var asked: Set<String> = []
    // Where its calls fail, a message that cannot be claimed is overtaken, as is promised; and
    // where there is no room to write down how far a batch has come, it comes again as a whole.
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
        // What was overtaken comes later, in the next life too, whose calls do not fail any more.
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

  /// In the end each message that was sent has come, and whoever asked how it ended was told the
  /// truth.
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
