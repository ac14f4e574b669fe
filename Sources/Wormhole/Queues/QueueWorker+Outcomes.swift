internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The ends of claims: each renames or removes exactly the name of the claim.
extension QueueWorker {
  /// A claim has ended, by whatever outcome.
  func letGo(_ claimed: ClaimedName) {
    let key = claimed.name.key
    let isAwaited = state.withLock { state in
      state.inHand -= 1
      guard let key else { return false }
      state.machine.released(key)
      return !state.asking.isEmpty
    }
    if isAwaited { runner.trigger() }
    leaveIfDone()
  }

  /// Settles a message that was claimed after its time to live, now or later.
  func expire(_ claimed: ClaimedName, _ header: MessageFile.Header) {
    do throws(WormholeError) {
      try settlement.end(claimed, .expired)
      if header.file != nil { queue.dropFile(of: claimed.name) }
    } catch {
      log(settlement.level(of: error, claimed.name), error, claimed.name)
      // A refusal concerns the receipts of the sender: the message can be read, and is no dead
      // letter.
      let pause = error.code == .refused ? settings.longestDelay : 1_000_000_000
      if error.code != .superseded { hold(claimed, .nanoseconds(pause), .undone) }
    }
    letGo(claimed)
  }

  /// - Parameter begun: when the handling deadline of the claim began.
  func failed(
    _ claimed: ClaimedName, attempt: Int, _ reason: String, since begun: Int64
  ) throws(WormholeError) {
    guard attempt >= settings.attempts else {
      let pause = Duration.nanoseconds(settings.delay(after: attempt))
      return hold(claimed, pause, .failed, since: begun)
    }
    try buryOrHold(claimed, attempts: attempt, reason, since: begun)
  }

  /// Dead-letters a message; if that fails, the claim is held.
  ///
  /// - Parameter begun: when the handling deadline of the claim began; nil for just now.
  func buryOrHold(
    _ claimed: ClaimedName, attempts: Int, _ reason: String, since begun: Int64? = nil
  ) throws(WormholeError) {
    do throws(WormholeError) {
      try settlement.giveUp(claimed, attempts: attempts, reason)
    } catch {
      if error.code != .superseded {
        hold(claimed, .nanoseconds(settings.longestDelay), .failed, since: begun)
      }
      throw error
    }
    container.log(
      .error, "dead-lettered message '\(claimed.name.id)' of queue '\(queue.name)': \(reason)",
      about: LogSubject(member: queue.name, message: claimed.name.id))
  }

  /// - Parameter begun: when the handling deadline of the claim began; nil for just now.
  func giveUp(
    _ claimed: ClaimedName, attempts: Int, _ reason: String, since begun: Int64? = nil
  ) {
    reporting(to: { log(.error, $0, claimed.name) }) { () throws(WormholeError) in
      try buryOrHold(claimed, attempts: attempts, reason, since: begun)
    }
    letGo(claimed)
  }

  /// - Parameter begun: when the handling deadline of the claim began; nil for just now.
  func requeue(
    _ claimed: ClaimedName, _ end: AttemptEnd, after pause: Duration, since begun: Int64? = nil
  ) throws(WormholeError) {
    if pause > .zero, !hasStopped { return hold(claimed, pause, end, since: begun) }
    do throws(WormholeError) {
      try putBack(claimed, after: end)
    } catch {
      if error.code != .superseded { hold(claimed, .seconds(1), end, since: begun) }
      throw error
    }
  }

  /// Keeps a claim without a handler for a time; one more is in hand until the claim is put back.
  ///
  /// - Parameter begun: when the handling deadline of the claim began; nil for just now.
  func hold(
    _ claimed: ClaimedName, _ pause: Duration, _ end: AttemptEnd, since begun: Int64? = nil
  ) {
    let due = now.addingClamped(max(0, pause.inNanosecondsClamped))
    hold(claimed, until: due, end, since: begun ?? now)
  }

  /// - Parameter isRefused: whether the system has just refused a renewal.
  private func hold(
    _ claimed: ClaimedName, until due: Int64, _ end: AttemptEnd, since begun: Int64,
    isRefused: Bool = false
  ) {
    // A claim that is held is not late, however long the pause is. A handler may have used most of
    // the time.
    let deadline = Mutants.has(.holdUnrenewed) ? nil : own.workerDeadline?.inNanosecondsClamped
    let renewal = deadline.map { deadline in
      isRefused
        ? now.addingClamped(Self.pause(within: deadline)) : begun.addingClamped(deadline / 2)
    }
    let held = HeldClaim(
      claimed: claimed, due: due, renewal: renewal ?? .max, begun: begun, end: end)
    let isLate = state.withLock { state in
      guard !state.isStopped else { return true }
      state.inHand += 1
      state.machine.hold(held)
      return false
    }
    if isLate {
      try? putBack(claimed, after: end)
    } else {
      runner.trigger()
    }
  }

  /// The pause after a refused renewal, in nanoseconds: at most a second, as after other refused
  /// calls, and so short that several renewals are tried before the claim is late.
  private static func pause(within deadline: Int64) -> Int64 {
    min(1_000_000_000, max(1_000_000, deadline / 16))
  }

  func renew(_ held: HeldClaim) {
    let moment = now
    do throws(WormholeError) {
      hold(try renewed(held.claimed), until: held.due, held.end, since: moment)
    } catch {
      log(.error, error, held.claimed.name)
      if error.code != .superseded {
        hold(held.claimed, until: held.due, held.end, since: held.begun, isRefused: true)
      }
    }
    letGo(held.claimed)
  }

  func putBack(_ held: HeldClaim) {
    reporting(to: { log(.error, $0, held.claimed.name) }) { () throws(WormholeError) in
      // After an error the claim is held again: otherwise another worker would return the message
      // after the handling deadline.
      try requeue(held.claimed, held.end, after: .zero, since: held.begun)
    }
    letGo(held.claimed)
  }

  /// Returns a claim to the queue, for any worker.
  private func putBack(
    _ claimed: ClaimedName, after end: AttemptEnd
  ) throws(WormholeError) {
    do throws(Errno) {
      let back = claimed.returned(after: end)
      let isOurs = try own.move(
        claimed.text, from: .claimed, to: queue, back == nil ? .inbox : .claimed,
        as: back?.text ?? claimed.name.text)
      if !isOurs { throw .noSuchFile }
    } catch {
      if error == .noSuchFile { throw settlement.superseded("requeue message", claimed, error) }
      throw WormholeError(error, "requeue message", claimed.name.id, at: queue)
    }
  }

  /// Gives a claim a new name: its handling deadline starts anew.
  func renewed(_ claimed: ClaimedName) throws(WormholeError) -> ClaimedName {
    let operation = "renew the claim of message"
    if Mutants.has(.keepClaimName) { return claimed }
    let next = claimed.renewed(claim: freshClaim)
    let isOurs = try naming(
      operation, claimed.name.id, at: queue,
      own.move(claimed.text, from: .claimed, .claimed, as: next.text))
    if isOurs { return next }
    throw settlement.superseded(operation, claimed)
  }

  func later(_ pause: Duration, _ body: @escaping @Sendable () -> Void) {
    container.options.time.ring(
      at: container.options.time.now + pause, on: container.background, body)
  }
}
