package import WormholeContainerStorage
internal import WormholeSyscalls

/// One worker of a queue of this machine, which lends its messages to another machine's workers.
///
/// Everything that holds of a worker holds here: the claims, the handling deadline, the order of
/// keys, the attempts. A carrier that is killed is a worker that has ended, so the queue's other
/// workers return its messages at once, marked, and the other machine's acknowledgements are
/// refused.
package final class LentQueue: Sendable {
  /// A message that is lent to the other machine.
  package struct Job: Hashable, Sendable {
    /// A name that no other claim has, in any process.
    package let id: String
    package let name: MessageName
    /// The number of the attempt, and whether an earlier one was interrupted.
    package let attempt: Int
    package let isMarked: Bool

    package init(id: String, name: MessageName, attempt: Int, isMarked: Bool) {
      (self.id, self.name, self.attempt, self.isMarked) = (id, name, attempt, isMarked)
    }
  }

  private struct Held {
    let job: Job
    let message: Message
    let delivery: QueueDelivery
    var renewed: Instant
    var isEnding = false
    let resume: @Sendable () -> Void
  }

  private struct State {
    var room = 0
    var lastTask = 0
    /// The tasks that may claim messages, and the numbers of the tasks without a message.
    var tasks: [Int: Task<Void, Never>] = [:]
    var idle: Set<Int> = []
    var jobs: [String: Held] = [:]
    var fresh: [Job] = []
    var lastJob = 0
    var isStopped = false

    /// A task that is about to end counts no more: the next room may need another one at once.
    mutating func forget(task number: Int) -> Task<Void, Never>? {
      idle.remove(number)
      return tasks.removeValue(forKey: number)
    }
  }

  /// After so long without a renewal, a message goes to another worker.
  package static let deadline = Duration.seconds(10)
  /// Larger messages, and those with files, are left to the workers of this machine.
  package static let largestMessage = 384 << 10

  private let worker: QueueWorker
  private let state = Monitor(State())
  private let isClaimed: @Sendable () -> Void

  /// - Parameter isClaimed: called when ``fresh`` has another message.
  package init(
    _ name: String, _ container: SharedContainer, isClaimed: @escaping @Sendable () -> Void
  ) throws(WormholeError) {
    self.isClaimed = isClaimed
    worker = try QueueWorker(name, container, deadline: Self.deadline) {
      (queue, name) throws(Errno) in
      guard try queue.status(of: name.fileName, in: .files) == nil else { return false }
      return try queue.status(of: name.text, in: .inbox).map { $0.size <= Self.largestMessage }
        ?? true
    }
    guard !worker.queue.isAway else {
      throw WormholeError(
        .conflict, "lend messages of queue", name, because: "its home is another machine")
    }
    try worker.begin()
  }

  // MARK: Claims

  /// The clock by which all workers measure the ages of claims.
  private var now: Instant { worker.container.options.time.now }

  /// How many messages the other machine may have.
  package func setRoom(_ room: Int) {
    let surplus = state.withLock { state -> [Task<Void, Never>] in
      state.room = room
      guard !state.isStopped else { return [] }
      while state.tasks.count < room {
        state.lastTask += 1
        let number = state.lastTask
        state.idle.insert(number)
        state.tasks[number] = Task.detached { await self.claim(number) }
      }
      let surplus = Array(state.idle.prefix(max(0, state.tasks.count - room)))
      return surplus.compactMap { state.forget(task: $0) }
    }
    for task in surplus { task.cancel() }
  }

  private func claim(_ number: Int) async {
    while mayClaim(number), let message = await worker.next() {
      await withCheckedContinuation { continuation in
        keep(message, number) { continuation.resume() }
      }
    }
    state.withLock { _ = $0.forget(task: number) }
  }

  private func mayClaim(_ number: Int) -> Bool {
    state.withLock { state in
      guard !state.isStopped, state.tasks[number] != nil, state.tasks.count <= state.room else {
        _ = state.forget(task: number)
        return false
      }
      state.idle.insert(number)
      return true
    }
  }

  private func keep(_ message: Message, _ number: Int, _ resume: @escaping @Sendable () -> Void) {
    let isKept = state.withLock { state in
      guard !state.isStopped, state.tasks[number] != nil,
        let delivery = message.source as? QueueDelivery
      else { return false }
      state.idle.remove(number)
      state.lastJob += 1
      let carried = delivery.carried
      let job = Job(
        id: "\(worker.own.escaped.prefix(16)).\(state.lastJob)", name: carried.name,
        attempt: carried.attempt, isMarked: carried.isMarked)
      state.jobs[job.id] = Held(
        job: job, message: message, delivery: delivery, renewed: now, resume: resume)
      state.fresh.append(job)
      return true
    }
    guard isKept else {
      message.requeue()
      return resume()
    }
    isClaimed()
  }

  /// The messages that have no number of the flow yet.
  package var fresh: [Job] { state.withLock { $0.fresh } }

  /// The messages have numbers.
  package func bound(_ ids: Set<String>) {
    state.withLock { $0.fresh.removeAll { ids.contains($0.id) } }
  }

  /// How many messages the other machine has.
  package var count: Int { state.withLock { $0.jobs.count } }

  /// The file of a message, whose deadline starts anew; nil if the message is another worker's.
  package func bytes(of id: String) -> [UInt8]? {
    guard let held = state.withLock({ $0.jobs[id] }), renew(held) else { return nil }
    return held.delivery.carried.bytes
  }

  /// Renews the claims of the messages that the other machine has, as it has stated just now.
  ///
  /// - Returns: the stated messages that are another worker's by now, or have ended.
  @discardableResult
  package func renew(_ stated: Set<String>) -> Set<String> {
    let now = now
    for held in state.withLock({ Array($0.jobs.values) }) {
      guard !stated.contains(held.job.id), !Mutants.has(.renewUnstated) else {
        if now - held.renewed >= Self.deadline / 5, !Mutants.has(.lendUnrenewed) {
          _ = renew(held)
        }
        continue
      }
      // A look that fails is repeated.
      if (try? held.delivery.isHeld) == false { lose(held) }
    }
    return state.withLock { state in stated.filter { state.jobs[$0] == nil } }
  }

  private func renew(_ held: Held) -> Bool {
    do throws(WormholeError) {
      try held.message.renew()
      state.withLock { $0.jobs[held.job.id]?.renewed = now }
      return true
    } catch {
      guard error.code != .superseded else {
        lose(held)
        return false
      }
      return true
    }
  }

  /// The message is another worker's by now.
  private func lose(_ held: Held) {
    guard remove(held.job.id) else { return }
    // Otherwise the message would end once more with its last reference.
    try? held.message.acknowledge()
    held.resume()
  }

  /// Returns false if the claim has ended before: only one caller lets its task go on.
  private func remove(_ id: String) -> Bool {
    state.withLock { state in
      state.fresh.removeAll { $0.id == id }
      return state.jobs.removeValue(forKey: id) != nil
    }
  }

  // MARK: Ends

  /// Ends a claim as the other machine has stated; false if the message is another worker's by now.
  ///
  /// After an error, an acknowledgement may be repeated.
  package func end(_ id: String, _ end: LoanEnd) throws(WormholeError) -> Bool {
    let any = Mutants.has(.endAnyClaim) ? state.withLock { $0.jobs.keys.first } : nil
    guard let held = beginEnd(of: id) ?? any.flatMap({ beginEnd(of: $0) }) else { return false }
    do throws(WormholeError) {
      try perform(end, of: held)
    } catch {
      guard error.code != .superseded else {
        finishEnd(of: held)
        return false
      }
      if end == .acknowledged {
        // The message was handled: without its job it would end as a failed attempt.
        state.withLock { $0.jobs[held.job.id]?.isEnding = false }
      } else {
        // The message comes back at its deadline.
        finishEnd(of: held)
      }
      throw error
    }
    finishEnd(of: held)
    return true
  }

  /// The claim with the ID; nil if there is none, or if another caller is about to end it.
  private func beginEnd(of id: String) -> Held? {
    state.withLock { state in
      guard let held = state.jobs[id], !held.isEnding else { return nil }
      state.jobs[id]?.isEnding = true
      return held
    }
  }

  private func finishEnd(of held: Held) { if remove(held.job.id) { held.resume() } }

  private func perform(_ end: LoanEnd, of held: Held) throws(WormholeError) {
    switch end {
    case .acknowledged: try held.message.acknowledge()
    case .undone: try held.message.unclaim(.undone)
    case .failed: try held.message.unclaim(.failed)
    case .dead(let reason, let attempts):
      try held.delivery.giveUp(attempts: attempts, reason)
      held.message.requeue()
    }
  }

  /// Ends the worker; the other machine's messages go back, marked.
  package func stop() {
    let (tasks, jobs) = state.withLock { state in
      state.isStopped = true
      defer { (state.jobs, state.fresh) = ([:], []) }
      return (Array(state.tasks.values), Array(state.jobs.values))
    }
    worker.stop()
    for task in tasks { task.cancel() }
    for held in jobs {
      held.message.interrupt()
      held.resume()
    }
  }
}

/// How the other machine has ended with a message.
package enum LoanEnd: Hashable, Sendable {
  case acknowledged
  /// No worker has begun.
  case undone
  /// A worker has begun, and has ended or hung.
  case failed
  /// Each attempt has failed.
  case dead(reason: String, attempts: Int)
}
