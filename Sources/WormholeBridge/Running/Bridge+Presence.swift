internal import Wormhole
internal import WormholeContainerStorage
internal import WormholeRelay
internal import WormholeSyscalls

/// Which members run, here and elsewhere.
extension Bridge {
  /// Looks at what has changed in the container.
  func take(_ news: BridgeNews.NewsContent, _ now: Instant) {
    takeRequests(news)
    carryWakes(news.woken)
    carryQueues(now)
    for machine in news.borrowers { noteQueues(of: machine) }
    for resident in news.residents {
      guard let machine = residents[resident]?.machine else { continue }
      noteOutcomes(of: resident)
      guard let pair = pair(machine) else { continue }
      pair.changed.insert(resident)
      // Otherwise the message would wait for the next event, as a heartbeat.
      pair.due = .longAgo
      if case .queue(let name) = resident { look(atQueue: name, now) }
    }
    guard !news.members.isEmpty else { return }
    for name in news.members { look(at: name) }
    link?.nextBeat = now
  }

  /// Outcomes of a sender may wait for the machines that were the sender's home before.
  func noteOutcomes(of sender: Carrier.Resident) {
    for machine in residents.pastHomes(of: sender) {
      guard let pair = pairs[machine] else { continue }
      pair.changed.insert(sender)
      pair.due = .longAgo
    }
  }

  /// Looks again at the members that could not be looked at.
  func lookAgain(_ now: Instant) {
    for (name, failure) in unseen where failure.until <= now { look(at: name) }
  }

  private func look(at name: String) {
    do throws(WormholeError) {
      let profile = try container.peer(name).profile
      locals[name] = profile.flatMap { isLocal($0) ? $0 : nil }
      if unseen.removeValue(forKey: name) != nil { link?.nextBeat = .longAgo }
      if conflicts[name] != nil { settleHome(of: name) }
    } catch {
      // No notice follows when the error has passed.
      let pause = min((unseen[name]?.pause ?? .milliseconds(100)) * 2, Self.longestPause)
      if unseen[name] == nil { log(.warning, "\(error)") }
      unseen[name] = (.now + pause, pause)
    }
  }

  /// Whether a program of this machine has joined under the name, or the home has moved here.
  ///
  /// A proxy's profile is a bridge's own, also when the name is free again: the next program under
  /// the name may join on any machine.
  private func isLocal(_ profile: Profile) -> Bool {
    profile.machine == nil && profile.reachability != .neverJoined
      && (!profile.isCarried || Mutants.has(.claimShown))
  }

  /// Tells the other machines which members run here, and shows which of theirs do.
  func beat(_ link: ServerLink, _ now: Instant) {
    for (machine, beat) in beats where now - beat.arrived > beat.longestSilence {
      beats[machine] = nil
      show(machine)
    }
    guard link.nextBeat <= now, let subjects = link.subjects else { return }
    askHeld(now)
    for member in conflicts.keys { settleHome(of: member) }
    for machine in unsettled { if let fate = evicted[machine] { giveUp(machine, fate) } }
    countMessages()
    // A message of a flow that has failed may be received and not yet delivered.
    if nextSweep <= now, failed.isEmpty {
      nextSweep = now + .seconds(60)
      sweepGuests()
    }
    let own = locals.values.filter { $0.isRunning && homes[$0.name]?.machine == place.machine }
    // A machine without members that run has nothing that others could miss. The home of a member
    // that has just joined may not be recorded yet.
    let isQuiet =
      !locals.values.contains { $0.isRunning } && full.isEmpty && conflicts.isEmpty
      && unsettled.isEmpty && channels.own.isEmpty && queues.entries.isEmpty && work.isEmpty
    let interval = isQuiet ? Heartbeat.quietInterval : Heartbeat.interval
    link.nextBeat = now + interval
    guard let bytes = bytes(ofBeat: own, interval, atMost: link.connection.server.maxPayload)
    else { return }
    let subject = subjects.heartbeat(place.machine)
    let result = Result { () throws(RelayFailure) in
      try link.connection.publish(subject, bytes)
    }
    if case .success = result { link.echo.unheardBeats += 1 }
    note(publish: result, on: subject)
  }

  /// Encodes a beat that the servers carry, and notes what it leaves out as the bridge's trouble.
  private func bytes(
    ofBeat members: [Profile], _ interval: Duration, atMost limit: Int
  ) -> [UInt8]? {
    let terms = queueTerms
    var content = HeartbeatContent(
      members, full: full, channels: channelVersions, queues: terms, heirs: heirs,
      late: queues.late.values.reduce(into: []) { $0.formUnion($1) }, work: work)
    let bytes = content.encoded(atMost: limit) { content in
      Heartbeat.bytes(
        generation: place.generation, content.members, full: content.full,
        hasInfo: content.hasInfo, interval: interval, channels: content.channels,
        queues: content.queues, heirs: content.heirs, late: content.late, work: content.work)
    }
    queues.unstated = Set(terms.keys).subtracting(content.queues.keys)
    let isOther =
      trouble != nil && trouble != HeartbeatContent.withoutInfo
      && trouble != HeartbeatContent.withoutSome
    if let omission = content.omission {
      if !isOther { note(trouble: omission) }
    } else if !isOther {
      trouble = nil
    }
    return bytes
  }

  func take(heartbeat message: RelayMessage, _ now: Instant) {
    guard message.reply?.begins(with: "$JS.") != true,
      let machine = message.subject.split(separator: ".").last.map({ String($0) })
    else { return }
    // The servers pass a bridge's own heartbeats on to the bridge, too.
    if machine == place.machine { link?.echo.unheardBeats = 0 }
    // A machine that was given up sends heartbeats until its bridge reads the mark.
    guard machine != place.machine, evicted[machine] == nil, Incarnation(rawValue: machine) != nil,
      let beat = Heartbeat(message.payload, now)
    else { return }
    if let known = beats[machine], known.generation > beat.generation { return }
    // A bridge that has started again has read everything again.
    let isNew = beats[machine]?.generation != beat.generation
    let full = beats[machine]?.full
    beats[machine] = beat
    if beat.full != full { pairs[machine]?.isDirty = true }
    // What was published while the machine was away has not been confirmed.
    if isNew, let pair = pairs[machine] { pair.lastProgress = .longAgo }
    if isNew { repeatWakes(of: machine) }
    // Its programs cannot change channels of this machine before they hear of this bridge.
    if isNew, !channels.own.isEmpty || !queues.entries.isEmpty { link?.nextBeat = .longAgo }
    show(machine)
    askHeld(now)
    confirmCopies(beat.channels, of: machine)
    take(queuesOf: beat, machine, isNew: isNew, now)
  }

  /// Shows the members of a machine as its last heartbeat states them.
  private func show(_ machine: String) {
    let running = beats[machine]?.running ?? [:]
    for proxy in residents.all(on: machine) {
      guard case .member(let name) = proxy.resident else { continue }
      guard let member = running[name], homes[name]?.machine == machine else {
        proxy.disappear()
        continue
      }
      attempt { () throws(WormholeError) in
        try proxy.appear(
          as: member.incarnation, program: member.program, since: member.since, info: member.info)
      }
    }
  }

  /// Finds the members whose inboxes are full, so that other machines hold messages back.
  ///
  /// What is in transit is delivered all the same, so an inbox exceeds its limit by the messages of
  /// one window.
  private func countMessages() {
    for name in full.union(delivered) {
      do throws(WormholeError) {
        if try carrier.isFull(name) { full.insert(name) } else { full.remove(name) }
      } catch {
        log(.warning, "\(error)")
      }
    }
    delivered = []
  }

  private func sweepGuests() {
    attempt { () throws(WormholeError) in
      for guest in try carrier.removeUnusedGuests() { residents.drop(guest) }
    }
  }

  /// Without a connection, nobody elsewhere can be reached.
  func showNobody() {
    beats = [:]
    for proxy in residents.all { proxy.disappear() }
  }
}
