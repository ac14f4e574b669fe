internal import FoundationEssentials
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// The machine that a member's name belongs to, as the servers have it.
struct Home: Equatable {
  let machine: String
  let sequence: UInt64

  private enum Key { static let machine = "machine" }

  init?(_ message: StreamMessage) {
    guard let json = try? JSONPropertyList.decode(message.payload),
      let machine = json[Key.machine]?.stringValue, Incarnation(rawValue: machine) != nil
    else { return nil }
    (self.machine, sequence) = (machine, message.sequence)
  }

  static func bytes(_ machine: String) -> [UInt8] {
    Bridge.json([Key.machine: .string(machine)])
  }
}

/// The records of the group: the starts of machines, and the homes of members.
///
/// One consumer reads the last record of each subject and all changes. So a record costs the
/// servers one message and each machine one consumer, and no machine asks for what has not changed.
extension Bridge {
  static func json(_ value: PropertyListValue) -> [UInt8] {
    Array(((try? JSONPropertyList.encode(value)) ?? "").utf8)
  }

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
      for message in messages { self?.take(message, subjects) }
    }
  }

  /// Forgets the records that the servers no longer have: the bridge writes these records again.
  ///
  /// The connection to a leaf outlives the servers behind the leaf. A reader that begins again
  /// gives all records of the servers once more. The servers have lost every record that the reader
  /// does not give.
  func forgetLostRecords(_ link: Link) {
    guard let reader = link.records else { return }
    if reader.restarts != link.recordRestarts {
      link.recordRestarts = reader.restarts
      link.unseen = Set(homes.keys)
      link.isUnseen = recorded != nil
    }
    guard reader.isCaughtUp, link.isUnseen || !link.unseen.isEmpty else { return }
    log(.warning, "the servers have forgotten records: they are written again")
    for name in link.unseen {
      homes[name] = nil
      link.claims.remove(name)
    }
    if link.isUnseen { recorded = nil }
    (link.unseen, link.isUnseen) = ([], false)
  }

  private func take(_ message: StreamMessage, _ subjects: Subjects) {
    switch subjects.record(message.subject) {
    case .machine(let machine):
      guard machine == place.machine, let json = try? JSONPropertyList.decode(message.payload),
        let record = MachineRecord(json)
      else { return }
      recorded = (record, message.sequence)
      link?.isUnseen = false
      guard record.nonce == nonce else { return }
      clockOffset = Int64(clamping: message.timestamp) &- now
    case .member(let member):
      homes[member] = Home(message)
      link?.unseen.remove(member)
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
      Self.json(record.json), within: .seconds(10)
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
