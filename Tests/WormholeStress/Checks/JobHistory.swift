/// The messages of the queue that all workers share, and the check of the promises.
struct JobHistory {
  /// A message, with the times at which its handling began.
  private struct Job {
    let sender: Int
    let key: String?
    /// The message's position among all messages of its sender.
    let place: Int
    let isSent: Bool
    let isRefused: Bool
    var begun: [Int64] = []
    /// How many attempts were not marked as redelivered.
    var unmarked = 0
    var acknowledged = 0
  }

  private var jobs: [String: Job] = [:]
  private(set) var violations: [Violation] = []

  var count: Int { jobs.count }

  mutating func add(_ call: MadeCall) {
    guard case .job(let token, let key) = call.operation else { return }
    jobs[token] = Job(
      sender: call.worker, key: key, place: jobs.count, isSent: call.result == .done,
      isRefused: call.result?.isRefusal == true)
  }

  /// Adds the messages that one worker has handled; by then, all calls of all workers are known.
  mutating func handle(_ entries: [Journal.Entry], as name: String) {
    for entry in entries {
      switch entry.event {
      case .tookJob(let token, let isRedelivered):
        guard let job = jobs[token] else {
          violations.append(
            Violation(.torn, "job '\(token)' came to '\(name)', and nobody sent it"))
          continue
        }
        if job.isRefused {
          violations.append(Violation(.order, "job '\(token)' came, and was refused when sent"))
        }
        jobs[token]?.begun.append(entry.time)
        if !isRedelivered { jobs[token]?.unmarked += 1 }
      case .endedJob(let token, isSure: true): jobs[token]?.acknowledged += 1
      default: break
      }
    }
  }

  /// Checks that every message was handled and acknowledged once, that redeliveries were marked,
  /// and that the messages of one sender and key came strictly one after another.
  mutating func close() {
    for (token, job) in jobs {
      if job.isSent, job.begun.isEmpty {
        violations.append(Violation(.lost, "job '\(token)' never came"))
      }
      if job.unmarked > 1 {
        violations.append(Violation(.twice, "job '\(token)' came twice and did not say so"))
      }
      if job.acknowledged > 1 {
        violations.append(Violation(.twice, "job '\(token)' was acknowledged twice"))
      }
    }
    struct Line: Hashable {
      let sender: Int
      let key: String
    }
    var lines: [Line: [(token: String, job: Job)]] = [:]
    for (token, job) in jobs {
      guard let key = job.key, !job.begun.isEmpty else { continue }
      lines[Line(sender: job.sender, key: key), default: []].append((token, job))
    }
    for line in lines.values {
      let line = line.sorted { $0.job.place < $1.job.place }
      for (one, next) in zip(line, line.dropFirst())
      where one.job.begun.max()! > next.job.begun.min()! {
        violations.append(
          Violation(.order, "job '\(next.token)' came before '\(one.token)', which was sent first"))
      }
    }
  }
}
