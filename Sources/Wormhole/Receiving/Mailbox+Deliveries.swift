internal import Synchronization
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Reports by deliveries about their messages.
extension Mailbox {
  /// Returns the holder of a delivery, or its first holder.
  func holder(of delivery: MemberDelivery) -> Int {
    state.withLock { $0.open.isEmpty ? nil : $0.open[delivery.name]?.holder } ?? delivery.receiver
  }

  func failed(
    _ delivery: MemberDelivery, attempt: Int, index: Int?, by receiver: Int
  ) -> MailboxMachine.RetryDecision {
    let now = now
    // A single message is claimed again.
    if index == nil { forget(delivery) }
    return tell(about: delivery) { machine in
      let verdict = machine.failed(
        delivery.claimed, kind: delivery.header.label, attempt: attempt, index: index,
        by: receiver, now: now)
      if index != nil, case .retry = verdict { delivery.wait(true) }
      return verdict
    }
  }

  func closed(_ delivery: MemberDelivery, _ record: BatchProgress.Record?) {
    if let record { progress.withLock { $0 }?.close(record) }
    triggering { state in
      let open = state.open.isEmpty ? nil : state.open.removeValue(forKey: delivery.name)
      if let open, open.holder == nil {
        state.machine.endedAtRest(delivery.name)
      } else {
        state.machine.finished(by: open?.holder ?? delivery.receiver)
      }
    }
  }

  /// Forgets a file that is claimed anew, or is dead-lettered as a whole.
  func forget(_ delivery: MemberDelivery) {
    state.withLock { if !$0.open.isEmpty { $0.open[delivery.name] = nil } }
  }

  /// Fails a message that was released without an acknowledgement or a failure.
  ///
  /// The first one is reported: it is a mistake, unless the program means the failure.
  func abandon(_ delivery: MemberDelivery, _ index: Int, _ attempt: Int) {
    if !hasAbandoned.exchange(true, ordering: .relaxed), !isClosed {
      log(
        .warning,
        "a message was released without `acknowledge()`, `requeue(after:)` or `fail(_:)`: its "
          + "attempt counts as failed", delivery.name)
    }
    reporting(to: delivery.log) { () throws(WormholeError) in
      try delivery.fail(index, attempt: attempt, Message.abandoned)
    }
  }

  func postpone(_ claimed: ClaimedName, kind: MessageLabel?, by receiver: Int) {
    tell { $0.postpone(claimed, kind: kind, by: receiver, until: now + $0.settings.longestDelay) }
  }

  /// As ``postpone(_:kind:by:)`` for a message of a batch.
  func postpone(_ delivery: MemberDelivery, _ index: Int) {
    comeAgain(delivery, index, at: now + state.withLock { $0.machine.settings.longestDelay })
  }

  /// Leaves a message to the next receiver that asks.
  func release(_ delivery: MemberDelivery, _ index: Int, after pause: Duration = .zero) {
    if !delivery.isBatch { state.withLock { _ = $0.returned.insert(delivery.claimed) } }
    comeAgain(delivery, index, at: now + max(0, pause.inNanosecondsClamped))
  }

  /// Gives work back before a member that leaves returns the messages that no handler has.
  func givingBack(_ body: () -> Void) {
    state.withLock { $0.acting += 1 }
    body()
    endAction()
  }

  /// Redelivers a message as its next attempt, as if the current attempt had been interrupted.
  func cutOff(_ delivery: MemberDelivery, _ index: Int) {
    guard delivery.count == 1 else { return release(delivery, index) }
    let receiver = holder(of: delivery)
    forget(delivery)
    tell {
      $0.postpone(delivery.claimed, kind: delivery.header.label, by: receiver, until: now)
    }
  }

  /// Tries a message again at a moment.
  func comeAgain(_ delivery: MemberDelivery, _ index: Int, at due: Int64) {
    tell(about: delivery) { machine in
      machine.comeAgain(delivery.claimed, kind: delivery.header.label, index: index, at: due)
      delivery.wait(true)
    }
  }

  /// Schedules another try to write a handled file's outcome, with growing delays.
  func endLater(_ delivery: MemberDelivery, after tries: Int) {
    let pause = Int64(1_000_000_000) << Int64(min(tries, 6))
    tell(about: delivery, isOver: true) {
      $0.endLater(delivery.name, at: now + min(pause, $0.settings.longestDelay))
    }
  }

  /// Records a finished message of a batch whose other messages may wait.
  func rest(_ delivery: MemberDelivery) { tell(about: delivery) { _ in } }

  /// Changes the machine's state for a file; the file may lose its holder by the change.
  @discardableResult
  private func tell<Result>(
    about delivery: MemberDelivery, isOver: Bool = false, _ change: (inout MailboxMachine) -> Result
  ) -> Result {
    let (result, runners) = state.withLock { state in
      let result = change(&state.machine)
      let rests = isOver || delivery.isAtRest
      if rests, !isClosed {
        let open = state.open[delivery.name]
        let holder = open == nil ? delivery.receiver : open?.holder
        state.open[delivery.name] = Open(delivery: delivery, holder: nil)
        if let holder { state.machine.rests(delivery.name, by: holder) }
      }
      return (result, Array(state.receivers.values))
    }
    for runner in runners { runner.trigger() }
    return result
  }

  /// Gives a receiver an open file with a due message.
  func takeUp(_ name: MessageName, for receiver: Int) -> MemberDelivery? {
    state.withLock { state in
      guard let open = state.open[name] else { return nil }
      open.delivery.wait(false)
      if !state.returned.isEmpty { state.returned.remove(open.delivery.claimed) }
      if open.holder == nil {
        state.open[name]?.holder = receiver
        state.machine.wakes(name, by: receiver)
      }
      return open.delivery
    }
  }

  func finished(by receiver: Int) { tell { $0.finished(by: receiver) } }
}
