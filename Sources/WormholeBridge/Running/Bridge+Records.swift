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
  func askForDeployment(_ link: Link, _ now: Instant) {
    guard !link.isAskingForDeployment, link.retry ?? now <= now else { return }
    (link.isAskingForDeployment, link.retry) = (true, nil)
    let stream = Subjects.recordStream(0)
    link.jetStream.lastMessage(of: Deployment.subject, in: stream) {
      [weak self, weak link] result in
      guard let self, let link else { return }
      link.isAskingForDeployment = false
      link.retry = .now + .milliseconds(500)
      do {
        guard let message = try result.get() else { return self.note(noStreams: "no record") }
        guard let deployment = Deployment(message.payload) else {
          self.end = BridgeEnd(
            .refused, "the servers were set up by a later version of 'wormhole bridge'",
            hint: "use that version here, too")
          return
        }
        link.subjects = try Subjects(group: self.place.group, deployment)
        link.retry = nil
        self.readRecords(link)
      } catch {
        self.note(noStreams: "\(error)")
      }
    }
  }

  private func note(noStreams reason: String) {
    note(
      trouble: "the servers do not have the streams of the bridge (\(reason)); run 'wormhole "
        + "bridge setup' once")
  }

  private func readRecords(_ link: Link) {
    guard let subjects = link.subjects else { return }
    homes = [:]
    recorded = nil
    link.records = StreamReader(
      link.jetStream, stream: subjects.recordStream, filter: subjects.allRecords,
      from: .lastPerSubject
    ) { [weak self] messages in
      for message in messages {
        self?.note(given: message.subject)
        self?.take(message, subjects)
      }
    }
  }

  private func note(given subject: String) {
    guard let link, let reader = link.records else { return }
    if link.given.restarts != reader.restarts { link.given = (reader.restarts, []) }
    link.given.subjects.insert(subject)
  }

  /// Forgets the records that the servers have lost, and lets the bridge write its own again.
  ///
  /// A restarted reader gives all records again, so each missing record is lost. The connection
  /// may last through the loss, since a connection leads to the leaf only.
  func forgetLostRecords(_ link: Link) {
    guard let reader = link.records, reader.isCaughtUp, let subjects = link.subjects,
      reader.restarts != link.comparedRestarts
    else { return }
    link.comparedRestarts = reader.restarts
    let given = link.given.restarts == reader.restarts ? link.given.subjects : []
    for member in homes.keys {
      guard let subject = try? subjects.memberRecord(member), !given.contains(subject) else {
        continue
      }
      homes[member] = nil
      link.claims.remove(member)
    }
    if !given.contains(subjects.machineRecord(place.machine)) { recorded = nil }
  }

  private func take(_ message: StreamMessage, _ subjects: Subjects) {
    switch subjects.record(message.subject) {
    case .machine(let machine):
      guard machine == place.machine, let record = MachineRecord(message.payload) else { return }
      recorded = (record, message.sequence)
      // After a reconnect the same record is read again, long after it was stored.
      guard record.nonce == nonce, clockRecord != message.sequence else { return }
      clockRecord = message.sequence
      clockOffset = Int64(clamping: message.timestamp) &- now
    case .member(let member):
      homes[member] = Home(message)
      settleHome(of: member)
    case nil: break
    }
  }

  var now: Int64 { container.storage.options.environment.sinceEpoch() }

  // MARK: The machine's own record

  /// Makes this start of the bridge the recorded one, or finds that another one has continued.
  func claimPlace(_ link: Link, _ now: Instant) throws(WormholeError) {
    guard let reader = link.records, reader.isCaughtUp, !link.isClaiming else { return }
    if let found = recorded?.record {
      if found.nonce == nonce {
        link.retry = nil
        if !link.isServing { begin(link) }
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
    try place.begin(after: recorded?.record, nonce: nonce, folder)
    let record = MachineRecord(generation: place.generation, nonce: nonce)
    link.jetStream.publish(
      subjects.machineRecord(place.machine), id: nil, expectedLast: recorded?.sequence ?? 0,
      record.bytes, within: .seconds(10)
    ) { [weak self, weak link] result in
      link?.isClaiming = false
      // The reader shows what is recorded now, whoever has written it.
      link?.retry = .now + .milliseconds(200)
      if case .failure(let failure) = result { self?.note(publish: failure) }
    }
  }

  func note(publish failure: RelayFailure) {
    guard !JetStreamError.wrongLastSequence.contains(failure.errorCode ?? 0) else { return }
    if JetStreamError.full.contains(failure.errorCode ?? 0) {
      note(trouble: "the servers are full: \(failure.reason)")
    } else {
      note(trouble: failure.reason)
    }
  }

  // MARK: Homes

  /// Claims the names of this machine's members that no machine has.
  func claimHomes(_ link: Link, _ now: Instant) {
    guard link.records?.isCaughtUp == true, let subjects = link.subjects else { return }
    for name in locals.keys where homes[name] == nil && !link.claims.contains(name) {
      guard let subject = try? subjects.memberRecord(name) else { continue }
      link.claims.insert(name)
      link.jetStream.publish(
        subject, expectedLast: 0, Home.bytes(place.machine), within: .seconds(10)
      ) { [weak self, weak link] result in
        guard case .failure(let failure) = result else { return }
        link?.claims.remove(name)
        self?.note(publish: failure)
      }
    }
  }

  /// Makes the container agree with a member's home, or notes why it cannot.
  func settleHome(of member: String) {
    guard let home = homes[member] else { return }
    guard home.machine != place.machine else {
      conflicts[member] = nil
      return
    }
    do throws(WormholeError) {
      _ = try residents.proxy(of: .member(member), on: home.machine)
      _ = pair(home.machine)
      conflicts[member] = nil
      locals[member] = nil
    } catch {
      if conflicts[member] != error.reason { log(.warning, "\(error)") }
      conflicts[member] = error.reason
    }
  }
}
