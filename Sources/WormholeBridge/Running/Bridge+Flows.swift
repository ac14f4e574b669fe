internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// Bundles, confirmations and questions between two bridges.
extension Bridge {
  /// How long a sender waits for a confirmation before it asks.
  static let confirmationTime = Duration.seconds(3)
  /// How long the removal of records may wait for more of them.
  private static let finishTime = Duration.milliseconds(500)
  private static let mostUnfinished = 16
  static let longestPause = Duration.seconds(30)
  private static let mostHeld = 64
  /// The least `max_payload` of servers, with which a bundle of the usual size passes.
  static let leastPayload = 512 << 10

  private enum Key {
    static let (flow, behind, own) = ("flow", "behind", "own")
    static let (flowHeader, lastHeader) = ("Wh-Flow", "Wh-Last")
  }

  // MARK: Pairs

  /// The flows with a machine; nil while their files cannot be used.
  @discardableResult
  func pair(_ machine: String) -> Pair? {
    if let pair = pairs[machine] { return pair }
    // Its bridge may not continue under this name.
    guard evicted[machine] == nil else { return nil }
    if let failure = failed[machine], failure.until > .now { return nil }
    do throws(WormholeError) {
      if failed[machine] != nil { try residents.reopen(machine) }
      let pair = try Pair(machine, residents)
      (pair.out.jobs, pair.incoming.jobs) = (queues, queues)
      pair.incoming.isBehind = { [weak self] in self?.isBehind($0, machine) ?? false }
      pairs[machine] = pair
      if let link, link.isServing { findLast(machine, pair, link) }
      return pair
    } catch {
      fail(machine, error)
      return nil
    }
  }

  /// Reads the flows with a machine again later, as after a kill.
  private func fail(_ machine: String, _ error: any Error) {
    pairs[machine] = nil
    let pause = min((failed[machine]?.pause ?? .milliseconds(500)) * 2, Self.longestPause)
    failed[machine] = (.now + pause, pause, "\(error)")
    log(.warning, "cannot carry to and from machine \(machine): \(error)")
  }

  /// Ends the bridge if another copy of this container has sent a bundle.
  private func compare(_ message: LatestMessage, _ out: OutFlow) {
    guard let bundle = FlowBundle(message.payload), out.isForeign(bundle) else { return }
    end = BridgeEnd(
      .refused,
      "the servers have number \(bundle.last) of this container's flow to machine "
        + "\(out.machine), and this container has not sent the number",
      hint: "use the copy that has sent it, or make this container a new machine with 'wormhole "
        + "bridge rejoin'")
  }

  /// Reads each failed flow again at its time.
  ///
  /// Without news of the other machine, no other function of the bridge reads the flow again.
  func resumeFailed(_ now: Instant) {
    for (machine, failure) in failed where pairs[machine] == nil && failure.until <= now {
      pair(machine)
    }
  }

  /// The time at which the bridge reads the next failed flow again.
  var nextResumption: Instant? {
    failed.lazy.filter { self.pairs[$0.key] == nil }.map { $0.value.until }.min()
  }

  // MARK: Serving

  /// Begins to carry over a connection, after this start of the bridge was recorded.
  func begin(_ link: ServerLink) {
    guard let subjects = link.subjects else { return }
    link.isServing = true
    trouble = nil
    guard link.flows == nil else { return }
    link.connection.subscribe(subjects.heartbeats) { [weak self] message in
      self?.take(heartbeat: message, .now)
    }
    let stream = subjects.flowStream(to: place.machine)
    let start = position?.stream == stream ? position?.sequence ?? 0 : 0
    link.flows = StreamReader(
      link.jetStream, stream: stream, filter: subjects.flows(to: place.machine),
      from: .after(start)
    ) { [weak self] messages in
      guard let self else { return }
      self.receive(messages)
      if let last = messages.last { self.position = (stream, last.sequence) }
    }
    let known = (try? BridgeFolder(["out"], of: container.storage).names()) ?? []
    for machine in residents.machines.union(known) where Incarnation(rawValue: machine) != nil {
      if let pair = pairs[machine] {
        findLast(machine, pair, link)
      } else {
        pair(machine)
      }
    }
  }

  /// Asks the servers for the last bundle of a flow, to publish no bundle again without need.
  private func findLast(_ machine: String, _ pair: Pair, _ link: ServerLink) {
    guard let subjects = link.subjects else { return }
    pair.isPublishing = true
    pair.lastProgress = .longAgo
    pair.isDirty = true
    link.jetStream.lastMessage(
      of: subjects.flow(from: place.machine, to: machine), in: subjects.flowStream(to: machine)
    ) { [weak self, weak pair] result in
      guard let self, let pair, self.pairs[machine] === pair else { return }
      pair.isPublishing = false
      guard let message = try? result.get() else { return }
      self.compare(message, pair.out)
      func header(_ name: String) -> String? { message.headers.first { $0.name == name }?.value }
      guard header(Key.flowHeader) == pair.out.flow,
        let last = header(Key.lastHeader).flatMap({ Int($0) })
      else { return }
      pair.out.note(published: last)
    }
  }

  /// Moves the flow to a machine on, as far as that is possible without waiting.
  func move(_ machine: String, _ pair: Pair, _ link: ServerLink, _ now: Instant) {
    do {
      if pair.out.wantsPieces { pair.changed.formUnion(pair.out.interrupted) }
      if pair.isDirty || !pair.changed.isEmpty || !pair.out.refusals.waiting.isEmpty
        || queues.takeNews(of: machine)
      {
        // After a listing of all, what a full window has left over is looked for at all of them.
        let proxies =
          pair.isDirty
          ? residents.all(for: machine) : pair.changed.compactMap { residents[$0] }
        pair.changed = []
        pair.isDirty = try !pair.out.collect(
          from: proxies, full: beats[machine]?.full ?? [])
        try giveBack(pair.out.strangers)
      }
      try publish(machine, pair, link, now)
      ask(machine, pair, link, now)
      askForOwner(machine, pair, now)
      if pair.out.unfinished >= Self.mostUnfinished
        || pair.out.unfinished > 0 && now - pair.lastProgress >= Self.finishTime
      {
        try pair.out.finish()
      }
      pair.due = due(pair)
      failed[machine] = nil
    } catch {
      fail(machine, error)
    }
  }

  /// The time of the next step of the flow though nothing arrives.
  func due(_ pair: Pair) -> Instant? {
    var moments: [Instant] = []
    if pair.out.published > pair.out.confirmed, !pair.isAsking {
      moments.append(pair.lastProgress + Self.confirmationTime)
    }
    if pair.out.unfinished > 0 { moments.append(pair.lastProgress + Self.finishTime) }
    // While the servers are asked for the last bundle, nothing is published.
    if let retry = pair.retry, !pair.isPublishing { moments.append(retry) }
    if !pair.held.isEmpty, !pair.isVerifying { moments.append(pair.nextQuestion) }
    return moments.min()
  }

  private func publish(
    _ machine: String, _ pair: Pair, _ link: ServerLink, _ now: Instant
  ) throws {
    guard !pair.isPublishing, pair.retry ?? now <= now, let subjects = link.subjects else { return }
    let largest = link.connection.server.maxPayload - 64 << 10
    guard largest >= Self.leastPayload - 64 << 10 else {
      // Messages that wait are not to blame, and must not become dead letters.
      end = BridgeEnd(
        .refused, "the servers carry messages of \(link.connection.server.maxPayload) bytes only",
        hint: "set 'max_payload' to 1MB on all servers and leaves")
      return
    }
    pair.retry = nil
    guard
      var bundle = try pair.out.bundle(
        generation: place.generation, size: min(largest, 400 << 10), largest: largest)
    else { return }
    bundle.records = Int(clamping: link.knownRecords)
    guard let bytes = bundle.encoded() else {
      throw WormholeError(
        .tooLarge, "carry messages to machine", machine, because: "a bundle cannot be encoded")
    }
    if pair.out.isConfirmed(before: bundle) { pair.lastProgress = now }
    pair.isPublishing = true
    let subject = subjects.flow(from: place.machine, to: machine)
    link.jetStream.publish(
      subject,
      headers: [(Key.flowHeader, bundle.flow), (Key.lastHeader, String(bundle.last))], bytes,
      within: .seconds(10)
    ) { [weak self, weak pair] result in
      self?.note(publish: result, on: subject)
      guard let self, let pair, self.pairs[machine] === pair else { return }
      pair.isPublishing = false
      switch result {
      case .success:
        pair.out.note(published: bundle)
        pair.pause = .milliseconds(100)
      case .failure(let failure):
        // The servers may have it all the same: the numbers show that to the receiver.
        pair.retry = .now + pair.pause
        let isFull = JetStreamError.full.contains(failure.errorCode ?? 0)
        pair.pause = min(pair.pause * 2, isFull ? Self.longestPause : .seconds(2))
      }
    }
  }

  /// Asks a machine how far it is, if it has confirmed nothing for a time.
  private func ask(_ machine: String, _ pair: Pair, _ link: ServerLink, _ now: Instant) {
    guard !pair.out.isConfirmed, pair.out.published > pair.out.confirmed, !pair.isAsking,
      now - pair.lastProgress >= Self.confirmationTime
    else { return }
    pair.isAsking = true
    pair.lastProgress = now
    guard let question = try? BinaryEncoder().encode([Key.flow: pair.out.flow]) else { return }
    link.connection.request(
      Subjects.word(.ask, to: machine, from: place.machine), question, within: .seconds(2)
    ) { [weak self, weak pair] result in
      guard let self, let pair, self.pairs[machine] === pair else { return }
      pair.isAsking = false
      guard let reply = try? result.get(), let list = try? BinaryPropertyList.decode(reply.payload),
        let position = FlowPosition(list), position.flow == pair.out.flow
      else { return }
      self.confirm(machine, pair, position)
      // Whatever the servers have of the rest has been read.
      guard list[Key.behind]?.boolValue == false, pair.out.published > position.number
      else { return }
      self.log(
        .notice,
        "machine \(machine) lacks what follows number \(position.number): it is sent again")
      self.tallies[machine, default: FlowTally()].repetitions += 1
      pair.out.goBack(to: position.number)
    }
  }

  private func confirm(_ machine: String, _ pair: Pair, _ position: FlowPosition) {
    let before = pair.out.confirmed
    do {
      try pair.out.confirm(position)
    } catch {
      fail(machine, error)
      if error is FlowConflict { findForeign(machine, pair.out) }
      return
    }
    guard pair.out.confirmed > before else { return }
    pair.lastProgress = .now
    pair.changed.formUnion(pair.out.takeFreed())
  }

  /// Looks whether a copy of this container has sent what another machine states.
  ///
  /// Otherwise one machine that states a number could end the bridges of all others. Its own flow
  /// alone stands still, and is tried again.
  private func findForeign(_ machine: String, _ out: OutFlow) {
    guard let link, let subjects = link.subjects else { return }
    link.jetStream.lastMessage(
      of: subjects.flow(from: place.machine, to: machine), in: subjects.flowStream(to: machine)
    ) { [weak self] result in
      guard let self, let message = try? result.get() else { return }
      self.compare(message, out)
    }
  }

  // MARK: Receiving

  func receive(_ messages: [StreamMessage]) {
    var arrived: [String: [(FlowBundle, Int64)]] = [:]
    for message in messages {
      guard let machine = message.subject.split(separator: ".").last.map({ String($0) }),
        Incarnation(rawValue: machine) != nil, let bundle = FlowBundle(message.payload)
      else {
        log(.warning, "a bundle on '\(message.subject)' cannot be read, and is not received")
        continue
      }
      let delay = clockOffset.map { max(0, now &+ $0 &- Int64(clamping: message.timestamp)) }
      arrived[machine, default: []].append((bundle, delay ?? 0))
    }
    for (machine, bundles) in arrived { receive(bundles, machine) }
  }

  private func receive(_ bundles: [(FlowBundle, Int64)], _ machine: String) {
    guard let pair = pair(machine) else { return }
    let known = bundles.filter { pair.incoming.knows($0.0.flow) }
    if known.count < bundles.count {
      pair.held += bundles.filter { !pair.incoming.knows($0.0.flow) }
      pair.held.removeFirst(max(0, pair.held.count - Self.mostHeld))
      askForOwner(machine, pair, .now)
    }
    guard !known.isEmpty else { return }
    do {
      let findings = try pair.incoming.receive(known.map { (bundle: $0.0, delay: $0.1) })
      let gaps = findings.count { $0 == .gap }
      if gaps > 0 { tallies[machine, default: FlowTally()].gaps += gaps }
      for finding in findings where finding == .otherChain || finding == .earlierGeneration {
        log(.warning, "entries of machine \(machine) do not continue its flow, and are dropped")
      }
      if findings.contains(where: \.isReceived) { awaited[machine] = nil }
      confirm(to: machine, pair)
      for (bundle, _) in known {
        for entry in bundle.entries where entry.kind == .message && !entry.isQueue {
          delivered.insert(entry.receiver)
        }
      }
      // A quiet machine says at once that an inbox is full.
      if let link, !delivered.isEmpty {
        link.nextBeat = min(link.nextBeat, .now + Heartbeat.interval)
      }
    } catch {
      // Nothing was confirmed: the machine sends it again.
      fail(machine, error)
    }
  }

  private func confirm(to machine: String, _ pair: Pair) {
    guard let link, let position = pair.incoming.position,
      let bytes = try? BinaryEncoder().encode(PropertyListValue.dictionary(position.propertyList))
    else { return }
    // The machine asks if this is lost.
    try? link.connection.publish(
      Subjects.word(.confirm, to: machine, from: place.machine), bytes)
  }

  /// Asks a machine whether the flow that has come is its own: otherwise whoever may publish under
  /// its name could replace what it sends.
  private func askForOwner(_ machine: String, _ pair: Pair, _ now: Instant) {
    guard let link, let flow = pair.held.last?.0.flow, !pair.isVerifying,
      pair.nextQuestion <= now, let question = try? BinaryEncoder().encode([Key.flow: flow])
    else { return }
    pair.isVerifying = true
    pair.nextQuestion = now + .seconds(1)
    link.connection.request(
      Subjects.word(.own, to: machine, from: place.machine), question, within: .seconds(2)
    ) { [weak self, weak pair] result in
      guard let self, let pair, self.pairs[machine] === pair else { return }
      pair.isVerifying = false
      // Without a reply the question is asked again: until then the bundles are held, and the
      // machine does not send them again.
      guard let reply = try? result.get(), let list = try? BinaryPropertyList.decode(reply.payload),
        let isOwn = list[Key.own]?.boolValue
      else { return }
      let held = pair.held.filter { $0.0.flow == flow }
      pair.held.removeAll { $0.0.flow == flow }
      guard isOwn else {
        self.log(.warning, "a flow that machine \(machine) does not know is not received")
        return
      }
      do throws(WormholeError) {
        try pair.incoming.begin(flow)
      } catch {
        return self.fail(machine, error)
      }
      self.receive(held, machine)
    }
  }

  // MARK: Words

  func take(word message: RelayMessage) {
    // A server publishes on behalf of every reader: such a message comes from no bridge.
    guard message.reply?.begins(with: "$JS.") != true,
      let (word, machine) = Subjects.word(message.subject),
      // Other machines get answers from a bridge that serves.
      link?.flows != nil || machine == place.machine
    else { return }
    if word == .here { return take(here: message, from: machine) }
    // A machine that was given up sends requests until its bridge reads the mark.
    guard evicted[machine] == nil, let list = try? BinaryPropertyList.decode(message.payload)
    else { return }
    if word == .live { return take(request: message, list, from: machine) }
    if word == .put { return take(change: message, list, from: machine) }
    if word == .wake { return take(wake: message, list, from: machine) }
    guard let pair = pairs[machine] else { return }
    switch word {
    case .here, .live, .put, .wake: break
    case .confirm:
      if let position = FlowPosition(list) { confirm(machine, pair, position) }
    case .ask:
      guard let flow = list[Key.flow]?.stringValue else { return }
      let position = pair.incoming.knows(flow) ? pair.incoming.position : nil
      var reply = (position ?? FlowPosition(flow: flow, number: 0, chain: .start)).propertyList
      reply[Key.behind] = .boolean(link?.flows?.isCaughtUp != true || !pair.held.isEmpty)
      answer(message, .dictionary(reply))
    case .own:
      answer(message, [Key.own: .boolean(list[Key.flow]?.stringValue == pair.out.flow)])
    }
  }

  func answer(_ message: RelayMessage, _ reply: PropertyListValue) {
    guard let link, let subject = message.reply, let bytes = try? BinaryEncoder().encode(reply)
    else { return }
    try? link.connection.publish(subject, bytes)
  }
}
