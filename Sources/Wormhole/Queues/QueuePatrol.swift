internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Returns the claims of workers that have ended, and those past their handling deadline.
///
/// Every worker patrols, so no worker is needed for that. Two that return the same claim rename the
/// same name: one of them succeeds.
final class QueuePatrol: Sendable {
  private let queue: MemberDirectory
  /// The name of the worker's own directory.
  private let own: String
  private let container: SharedContainer
  private let worker: Worker
  private let workers: NoticedFolder
  private let state = Monitor(State())

  private struct State {
    var observer = ClaimObserver()
    /// The watches on the ends of the other workers.
    var ends: [String: NamedWatch] = [:]
  }

  /// How often the claims of others are looked for, while there are other workers: a message that
  /// is late is returned within its deadline and this time.
  private static let period = Duration.milliseconds(700)

  init(_ queue: MemberDirectory, _ own: String, _ container: SharedContainer) {
    self.queue = queue
    self.own = own
    self.container = container
    worker = Worker(staysOffWatcher: true, container.options.time)
    workers = NoticedFolder(worker)
  }

  func begin() throws(Errno) {
    worker.begin { [weak self] in self?.look() }
    try workers.begin { hear throws(Errno) in
      try queue.watch(.workers) { _ in hear(.lookAgain) }
    }
    worker.run()
  }

  /// Looks soon, as there is a claim that may last too long.
  func expectClaim() { worker.trigger(at: container.options.time.now + Self.period) }

  func stop() {
    worker.end()
    workers.stop()
    let ends = state.withLock { exchange(&$0.ends, with: [:]) }
    for watch in ends.values { watch.stop() }
  }

  private func look() {
    do throws(Errno) {
      try lookAfter(queue.workers())
    } catch {
      queue.log(.error, "cannot look after the workers of queue", error)
      worker.retry()
    }
  }

  /// An error with one worker does not delay the messages of the others: it is thrown at the end.
  private func lookAfter(_ workers: [MemberDirectory]) throws(Errno) {
    var failure = Errno.of { () throws(Errno) in try watchEnds(of: workers) }
    var claims: [(claim: ClaimObserver.Claim, limit: Int64)] = []
    var homes: [String: MemberDirectory] = [:]
    for one in workers {
      let error = Errno.of { () throws(Errno) in
        if one.escaped != own, !Mutants.has(.ignoreEndedWorkers), try !one.isPresentStill() {
          return try returnAll(of: one)
        }
        guard let limit = one.workerDeadline?.inNanosecondsClamped else { return }
        homes[one.escaped] = one
        for claimed in try one.claimedNames() {
          claims.append((.init(worker: one.escaped, claimed: claimed), limit))
        }
      }
      failure = error ?? failure
    }
    let now = container.options.time.now
    let seen = claims
    let (late, next) = state.withLock { $0.observer.observe(seen, now: now.nanoseconds) }
    for claim in late where !Mutants.has(.ignoreDeadlines) {
      guard let home = homes[claim.worker] else { continue }
      let error = Errno.of { () throws(Errno) in try putBack(claim.claimed, of: home, "late") }
      failure = error ?? failure
    }
    // Who hears of no claim of another worker has to look.
    let isAlone = workers.allSatisfy { $0.escaped == own }
    var moment = isAlone && claims.isEmpty ? nil : now + Self.period
    if let next { moment = min(moment ?? Instant(nanoseconds: next), Instant(nanoseconds: next)) }
    if let moment { worker.trigger(at: max(moment, now + .milliseconds(5))) }
    if let failure { throw failure }
  }

  /// Watches exactly these workers, except for the own one.
  private func watchEnds(of workers: [MemberDirectory]) throws(Errno) {
    let names = Set(workers.map(\.escaped))
    let gone = state.withLock { state in
      let gone = state.ends.filter { !names.contains($0.key) }
      for name in gone.keys { state.ends[name] = nil }
      return gone
    }
    for watch in gone.values { watch.stop() }
    try workers.forEachDespiteErrors { one throws(Errno) in
      guard one.escaped != own, state.withLock({ $0.ends[one.escaped] == nil }) else { return }
      let watch = try one.watchEnd { [weak self] in self?.worker.trigger() }
      state.withLock { $0.ends[one.escaped] = watch }
    }
  }

  /// Returns the claims of all workers that have ended, once.
  ///
  /// An error with one worker does not delay the messages of the others: it is thrown at the end.
  func returnEnded() throws(Errno) {
    try queue.workers().forEachDespiteErrors { one throws(Errno) in
      if try !one.isPresentStill() { try returnAll(of: one) }
    }
  }

  /// An error with one claim does not delay the others: it is thrown at the end.
  private func returnAll(of worker: MemberDirectory) throws(Errno) {
    try worker.claimedNames().forEachDespiteErrors { claimed throws(Errno) in
      try putBack(claimed, of: worker, "ended")
    }
    _ = try worker.removeDeadWorker()
  }

  private func putBack(
    _ claimed: ClaimedName, of worker: MemberDirectory, _ reason: String
  ) throws(Errno) {
    // The attempt counts: it may have done all of its work.
    guard let back = claimed.returned(after: .failed),
      try worker.move(claimed.text, from: .claimed, to: queue, .claimed, as: back.text)
    else { return }
    container.log(
      .notice,
      reason == "late"
        ? "message '\(claimed.name.id)' of queue '\(queue.name)' has passed its handling deadline: "
          + "it is redelivered"
        : "a worker of queue '\(queue.name)' has ended with message '\(claimed.name.id)': it is "
          + "redelivered",
      about: LogSubject(member: queue.name, message: claimed.name.id))
  }
}

extension Sequence {
  /// Calls the body for each element, even after an error; throws the last error at the end.
  fileprivate func forEachDespiteErrors(
    _ body: (Element) throws(Errno) -> Void
  ) throws(Errno) {
    var failure: Errno?
    for element in self {
      failure = Errno.of { () throws(Errno) in try body(element) } ?? failure
    }
    if let failure { throw failure }
  }
}
