internal import FoundationEssentials
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// The records of the group: the starts of machines, and the homes of members.
///
/// One consumer reads the last record of each subject and all changes. So a record costs the
/// servers one message and each machine one consumer, and no machine asks for what has not changed.
extension Bridge {
  /// How long the records of this machine may be older than those of another machine.
  static let longestLag = Duration.seconds(60)
  /// How long a claim may take.
  private static let claimTime = Duration.seconds(10)
  /// Full servers refuse a claim at once.
  private static let claimPause = Duration.seconds(1)

  func askForDeployment(_ link: ServerLink, _ now: Instant) {
    guard !link.isAskingForDeployment, link.retry ?? now <= now else { return }
    (link.isAskingForDeployment, link.retry) = (true, nil)
    link.jetStream.readSetup { [weak self, weak link] result in
      guard let self, let link else { return }
      link.isAskingForDeployment = false
      link.retry = .now + .milliseconds(500)
      switch result {
      case .success(.done(let deployment)):
        do throws(WormholeError) {
          link.subjects = try Subjects(group: self.place.group, deployment)
          link.retry = nil
          self.readRecords(link)
        } catch {
          self.note(trouble: "\(error)")
        }
      case .success(.later): self.end = .laterSetup
      case .success(.missing): self.note(trouble: BridgeEnd.noStreams.description)
      case .failure(let failure):
        // They may have the streams all the same.
        self.note(trouble: "the servers do not answer: \(failure.reason)")
      }
    }
  }

  private func readRecords(_ link: ServerLink) {
    guard let subjects = link.subjects else { return }
    homes = [:]
    for member in unreadableHomes.keys { forget(unreadableHome: member) }
    recorded = nil
    beginChannels()
    link.records = StreamReader(
      link.jetStream, stream: subjects.recordStream, filter: subjects.allRecords,
      from: .lastPerSubject
    ) { [weak self] messages in
      for message in messages {
        self?.note(given: message)
        self?.take(message, subjects)
      }
    }
  }

  func note(given message: StreamMessage) {
    guard let link, let reader = link.records else { return }
    if link.given.restarts != reader.restarts { link.given = (reader.restarts, []) }
    link.given.subjects.insert(message.subject)
    link.knownRecords = max(link.knownRecords, message.sequence)
  }

  /// Whether a machine had read records that this machine lacks when the machine sent a bundle.
  ///
  /// A record may have been removed without a later one. So a machine is awaited for a time only,
  /// while the reader works.
  func isBehind(_ position: Int, _ machine: String) -> Bool {
    guard position > 0, let reader = link?.records else { return false }
    guard reader.isCaughtUp else { return true }
    let reached = Int(clamping: reader.position)
    guard position > reached else { return false }
    let now = Instant.now
    if let wait = awaited[machine], wait.position > reached {
      return now - wait.since < Self.longestLag
    }
    // The record of an earlier wait has arrived: the time of that wait does not count.
    awaited[machine] = (position, now)
    return true
  }

  /// Forgets the records that the servers have lost, and lets the bridge write its own again.
  ///
  /// A restarted reader gives all records again, so each missing record is lost. The connection
  /// may last through the loss, since a connection leads to the leaf only. A claim that the servers
  /// have acknowledged is lost too if they lose the record before the reader gives it. If a claim
  /// is still under way, the servers refuse the second claim.
  func forgetLostRecords(_ link: ServerLink) {
    guard let reader = link.records, reader.isCaughtUp, let subjects = link.subjects,
      reader.restarts != link.comparedRestarts
    else { return }
    link.comparedRestarts = reader.restarts
    // The servers may have been restored, with smaller positions.
    link.knownRecords = reader.position
    let given = link.given.restarts == reader.restarts ? link.given.subjects : []
    for member in link.claims.union(homes.keys).union(unreadableHomes.keys) {
      guard let subject = try? subjects.memberRecord(member), !given.contains(subject) else {
        continue
      }
      homes[member] = nil
      forget(unreadableHome: member)
      link.claims.remove(member)
    }
    forgetLostChannels(given, subjects)
    if !given.contains(subjects.machineRecord(place.machine)) { recorded = nil }
  }

  func take(_ message: StreamMessage, _ subjects: Subjects) {
    switch subjects.record(message.subject) {
    case .machine(let machine):
      guard let record = MachineRecord(message.payload) else { return }
      guard machine == place.machine else {
        if let fate = record.fate { giveUp(machine, fate) }
        return
      }
      recorded = (record, message.sequence)
      guard record.nonce == nonce, clockRecord != message.sequence else { return }
      // Also of a record that is read late: a further claim that is lost would make it recent.
      clockRecord = message.sequence
      // After a reconnect, the bridge may read the record long after the claim.
      guard let claimed, Duration.nanoseconds(sinceBoot &- claimed) < Self.claimTime else { return }
      bootTime = Int64(clamping: message.timestamp) &- sinceBoot
      ownBootTime = now &- sinceBoot
    case .member(let member):
      note(home: member, message)
      if homes[member]?.machine != place.machine { link?.claims.remove(member) }
      // The member may run already, and is part of the heartbeats from now on.
      if homes[member]?.machine == place.machine { link?.nextBeat = .longAgo }
      settleHome(of: member)
    case .channelHome(let name): take(channelHome: name, message)
    case .channelCopy(let name): take(channelCopy: name, message)
    case nil: break
    }
  }

  // MARK: Clocks

  var now: Int64 { container.storage.options.environment.sinceEpoch() }

  private var sinceBoot: Int64 { container.storage.options.environment.sinceBoot() }

  /// The servers' clock less this machine's, in nanoseconds; nil until the servers have stored the
  /// record of this start.
  var clockOffset: Int64? { bootTime.map { $0 &+ sinceBoot &- now } }

  /// A smaller correction of the clock does not matter for a time to live.
  private static let longestStep = Duration.seconds(5)
  /// How long until the record of this start may be stored for its time once more.
  private static let clockPause = Duration.seconds(60)

  /// Whether this machine's clock was set ahead after the servers' clock was read.
  ///
  /// A hypervisor may have paused the machine. The time since the start of the machine lacks the
  /// pause, and so does this machine's estimate of the servers' clock.
  var isClockAhead: Bool {
    guard let ownBootTime else { return false }
    return Duration.nanoseconds(now &- sinceBoot &- ownBootTime) > Self.longestStep
  }

  /// Follows a clock that was set back: a later step ahead may be shorter.
  func followClock() {
    if let known = ownBootTime { ownBootTime = min(known, now &- sinceBoot) }
  }

  /// Stores the record of this start once more if this machine's clock was set ahead, because the
  /// time of the record shows the servers' clock.
  ///
  /// The generation stays: after a new generation, other machines would give back lent messages.
  private func readClock(by record: MachineRecord, _ link: ServerLink, _ now: Instant) {
    followClock()
    guard isClockAhead, link.nextClockClaim <= now, let subjects = link.subjects,
      let sequence = recorded?.sequence
    else { return }
    (link.nextClockClaim, link.clockPatience) = (now + Self.clockPause, now + Self.claimTime)
    claimed = sinceBoot
    link.jetStream.publish(
      subjects.machineRecord(place.machine), expectedLast: sequence, record.bytes,
      within: Self.claimTime
    ) { [weak self] result in
      guard let self, case .failure(let failure) = result else { return }
      self.log(.warning, "the servers' clock cannot be read: \(failure.reason)")
    }
  }

  // MARK: The machine's own record

  /// Records this start of the bridge, or finds that another bridge has continued.
  func claimPlace(_ link: ServerLink, _ now: Instant) throws(WormholeError) {
    guard let reader = link.records, reader.isCaughtUp, !link.isClaiming else { return }
    if let found = recorded?.record {
      // Without the servers' time, the bridge stores a further record.
      if found.nonce == nonce, bootTime != nil {
        link.retry = nil
        readClock(by: found, link, now)
        // The age of a message that has waited is measured by the servers' clock.
        if !link.isServing, !isClockAhead || link.clockPatience <= now { begin(link) }
        return
      }
      guard found.fate == nil else {
        end = BridgeEnd(
          .refused, "machine \(place.machine) was given up with 'wormhole bridge evict'",
          hint: "make this container a new machine with 'wormhole bridge rejoin'")
        return
      }
      guard place.nonces.contains(found.nonce) else {
        let wasServing = place.nonces.contains(nonce)
        end =
          wasServing
          ? BridgeEnd(
            .fenced, "another bridge has continued as machine \(place.machine)",
            hint: "find the copy of this container")
          : BridgeEnd(
            .refused,
            "another copy of this container has continued as machine \(place.machine), or the "
              + "container was restored from a backup",
            hint: "use the other copy, or make this one a new machine with 'wormhole bridge rejoin'"
          )
        return
      }
      if link.isServing {
        log(.warning, "the servers have forgotten the latest start: they were restored")
      }
    }
    guard link.retry ?? now <= now, let subjects = link.subjects else { return }
    (link.isClaiming, link.isServing, link.retry) = (true, false, nil)
    claimed = sinceBoot
    do throws(WormholeError) {
      try place.begin(after: recorded?.record, nonce: nonce, folder)
    } catch {
      // Receiving programs may free space: the bridge waits, as a flow does.
      guard error.code == .full else { throw error }
      (link.isClaiming, link.retry) = (false, now + .seconds(1))
      return note(trouble: "\(error)")
    }
    let record = MachineRecord(generation: place.generation, nonce: nonce)
    let subject = subjects.machineRecord(place.machine)
    link.jetStream.publish(
      subject, id: nil, expectedLast: recorded?.sequence ?? 0, record.bytes, within: Self.claimTime
    ) { [weak self, weak link] result in
      link?.isClaiming = false
      // The reader shows the present record, whichever bridge has written the record.
      link?.retry = .now + .milliseconds(200)
      self?.note(publish: result, on: subject)
    }
  }

  /// Notes the end of a publish: a failure is the bridge's trouble until a later one on the same
  /// subject succeeds.
  func note<Success>(publish result: Result<Success, RelayFailure>, on subject: String) {
    guard case .failure(let failure) = result,
      !JetStreamError.wrongLastSequence.contains(failure.errorCode ?? 0)
    else {
      guard let earlier = unpublished, earlier.subject == subject else { return }
      unpublished = nil
      // The trouble may be another one by now.
      if trouble == earlier.trouble { trouble = nil }
      return
    }
    let isFull = JetStreamError.full.contains(failure.errorCode ?? 0)
    let text = isFull ? "the servers are full: \(failure.reason)" : failure.reason
    note(trouble: text)
    unpublished = (subject, text)
  }

  // MARK: Homes

  /// Returns the home of a member; nil also after the machine was given up.
  ///
  /// The command may be killed before all records of the names are free.
  func home(of member: String) -> String? {
    homes[member]?.machine.flatMap { evicted[$0] == nil ? $0 : nil }
  }

  /// Notes a home record, also one that cannot be read, which is claimed as a lost one.
  private func note(home member: String, _ message: StreamMessage) {
    homes[member] = Home(message)
    guard homes[member] == nil else { return forget(unreadableHome: member) }
    // The servers compare the position of a claim with that of the record.
    unreadableHomes[member] = message.sequence
    let reason = Home.unreadable
    if conflicts[member] != reason { log(.warning, "cannot carry for '\(member)': \(reason)") }
    conflicts[member] = reason
  }

  private func forget(unreadableHome member: String) {
    if unreadableHomes.removeValue(forKey: member) != nil { conflicts[member] = nil }
  }

  /// Claims the names of this machine's members that no machine has.
  func claimHomes(_ link: ServerLink) {
    guard link.records?.isCaughtUp == true, let subjects = link.subjects,
      link.nextHomeClaim <= .now
    else { return }
    for name in locals.keys where home(of: name) == nil && !link.claims.contains(name) {
      guard let subject = try? subjects.memberRecord(name) else { continue }
      link.claims.insert(name)
      link.jetStream.publish(
        subject, expectedLast: homes[name]?.sequence ?? unreadableHomes[name] ?? 0,
        Home.bytes(place.machine, after: homes[name]), within: .seconds(10)
      ) { [weak self, weak link] result in
        if case .failure = result { link?.claims.remove(name) }
        self?.note(claim: result, on: subject, link)
      }
    }
  }

  /// Notes the end of a claim: after a failure, the next claim waits.
  func note<Success>(
    claim result: Result<Success, RelayFailure>, on subject: String, _ link: ServerLink?
  ) {
    if case .failure = result { link?.nextHomeClaim = .now + Self.claimPause }
    note(publish: result, on: subject)
  }

  /// Makes the container agree with a member's home, or notes why it cannot.
  func settleHome(of member: String) {
    guard homes[member] != nil else { return }
    do throws(WormholeError) {
      if let machine = home(of: member), machine != place.machine {
        try residents.move(member, to: machine)
        pair(machine)?.isDirty = true
        noteOutcomes(of: .member(member))
        locals[member] = nil
      } else {
        // The home is here, or nowhere: programs of this machine may join under the name.
        try residents.release(.member(member), isHome: home(of: member) != nil)
      }
      conflicts[member] = nil
    } catch {
      if conflicts[member] != error.reason { log(.warning, "\(error)") }
      conflicts[member] = error.reason
    }
  }

  /// Sends messages back to the machines of their senders, which send them to the new home.
  func giveBack(_ strangers: [(proxy: Proxy, name: MessageName)]) throws {
    for (proxy, name) in strangers {
      guard let origin = MessageOrigin(try proxy.origin(ofWaiting: name)) else {
        // The message was sent here before its sender's home moved, or is damaged: no machine gets
        // the outcome.
        if try proxy.claim(name) {
          try proxy.giveUp(
            name, "the home of its sender is another machine, and the message states no machine")
        }
        continue
      }
      guard let refusals = pair(origin.machine)?.out.refusals else { continue }
      let entry = FlowEntry(.message, to: origin.resident, origin.name)
      try refusals.add(returnOf: name, entry)
      try refusals.makeDurable()
      try proxy.remove(waiting: name)
    }
  }

  // MARK: Lost machines

  /// Takes back what waits for a machine that was given up, and frees the names of its members.
  func giveUp(_ machine: String, _ fate: MachineRecord.Fate) {
    evicted[machine] = fate
    (pairs[machine], failed[machine], beats[machine]) = (nil, nil, nil)
    awaited[machine] = nil
    do throws(WormholeError) {
      try Leftovers.settle(machine, fate, residents)
      unsettled.remove(machine)
    } catch {
      if unsettled.insert(machine).inserted { log(.warning, "\(error)") }
    }
  }
}
