internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// Changes of channels between machines: asked of other homes, and made at home.
extension Bridge {
  private static let answerTime = Duration.seconds(5)
  private static let retryTime = Duration.milliseconds(300)

  // MARK: Asking

  /// Reads the changes that an earlier bridge has asked without an answer.
  func readChanges() {
    guard !channels.hasReadChanges else { return }
    attempt { () throws(WormholeError) in
      for file in try changesFolder().names() {
        if let name = BridgeFolder.name(of: file) { _ = try queue(name) }
      }
      channels.hasReadChanges = true
    }
  }

  private func changesFolder() throws(WormholeError) -> BridgeFolder {
    try BridgeFolder([ChannelTraffic.changesName], of: container.storage)
  }

  func queue(_ name: String) throws(WormholeError) -> ChangeQueue {
    if let known = channels.queues[name] { return known }
    let queue = try ChangeQueue(changesFolder(), name)
    channels.queues[name] = queue
    return queue
  }

  func ask(_ change: Carrier.ChannelChange, _ answer: @escaping ChangeQueue.Answer) {
    do throws(WormholeError) {
      let queue = try queue(change.channel)
      queue.add(change, answer)
      moveChanges(change.channel, queue, .now)
    } catch {
      answer(Carrier.ChannelAnswer(.unreachable, reason: error.reason))
    }
  }

  /// Moves all changes on, as far as that is possible without waiting.
  func moveChanges(_ now: Instant) {
    for (name, queue) in channels.queues { moveChanges(name, queue, now) }
  }

  private func moveChanges(_ name: String, _ queue: ChangeQueue, _ now: Instant) {
    guard let link, link.isServing, let machine = channels.homes[name]?.machine,
      beats[machine] != nil
    else {
      let unreadable = channels.unreadableHomes[name].map { _ in Home.unreadable }
      return queue.failWaiting(unreadable ?? "the home of the channel cannot be reached")
    }
    if queue.current == nil, !queue.waiting.isEmpty {
      do throws(WormholeError) {
        try queue.begin(channels.lastChange + 1)
        channels.lastChange += 1
      } catch {
        return queue.failWaiting(error.reason)
      }
    }
    guard var current = queue.current, !queue.isAsking, queue.retry <= now else { return }
    if current.number == 0 {
      channels.lastChange += 1
      current.number = channels.lastChange
    }
    guard
      let bytes = ChannelTraffic.bytes(
        current.change, generation: place.generation, number: current.number,
        offset: clockOffset ?? 0)
    else {
      return queue.end(
        Carrier.ChannelAnswer(.refused, reason: "the change has a value that cannot be carried"))
    }
    queue.current = current
    queue.isAsking = true
    link.connection.request(
      Subjects.word(.put, to: machine, from: place.machine), bytes, within: Self.answerTime
    ) { [weak self, number = current.number] result in
      if queue.takesReply(to: number) { self?.take(result, queue) }
    }
  }

  private func take(_ result: Result<RelayMessage, RelayFailure>, _ queue: ChangeQueue) {
    switch result {
    case .success(let message):
      let wasSent = queue.current?.wasSent == true
      if let answer = ChannelTraffic.answer(message.payload, offset: clockOffset ?? 0),
        // A home of the past may have made the change: the present home knows.
        answer.result != .unreachable || !wasSent
      {
        queue.end(answer)
      } else {
        queue.current?.wasSent = true
        queue.retry = .now + Self.retryTime
      }
    case .failure(let failure):
      let isUnsent = queue.current?.wasSent != true
      switch failure.kind {
      case .noResponders where isUnsent:
        queue.end(
          Carrier.ChannelAnswer(.unreachable, reason: "no bridge serves the channel's home"))
      case .tooLarge, .malformed, .notPermitted:
        queue.end(
          Carrier.ChannelAnswer(
            .refused, reason: "the change cannot be carried: \(failure.reason)"))
      default:
        // The change may have been made: it is asked again until the home answers.
        queue.current?.wasSent = true
        queue.retry = .now + Self.retryTime
      }
    }
  }

  // MARK: At home

  func take(change message: RelayMessage, _ list: PropertyListValue, from machine: String) {
    let offset = clockOffset ?? 0
    guard let reply = message.reply, let change = ChannelTraffic.change(list, offset: offset),
      let number = ChannelTraffic.number(list)
    else { return }
    // The list decides, also while the servers have lost the record.
    guard channels.own[change.channel] != nil,
      (channels.homes[change.channel]?.machine ?? self.place.machine) == self.place.machine
    else {
      let answer = Carrier.ChannelAnswer(
        .unreachable, reason: "machine \(self.place.machine) is not the channel's home")
      if let bytes = ChannelTraffic.bytes(answer, offset: offset) {
        news.note(reply: bytes, to: reply)
      }
      return
    }
    let place = [change.channel, machine]
    // A message of an earlier change that was held up on its way.
    if let last = channels.asked[place], number.lexicographicallyPrecedes(last) { return }
    channels.asked[place] = number
    // A program may hold the lock of one channel for long.
    let maker = channels.makers[change.channel] ?? ChangeWorker(carrier)
    channels.makers[change.channel] = maker
    maker.make(change, for: machine) { [news] answer in
      // Without an answer, the other machine would ask forever.
      guard let answer, let refusal = ChannelTraffic.tooLarge(offset: offset) else { return }
      news.note(
        reply: ChannelTraffic.bytes(answer, offset: offset) ?? refusal, to: reply,
        orInstead: refusal)
    }
  }

  func stopChannels() {
    channels.desk?.stop()
    for maker in channels.makers.values { maker.stop() }
    for own in channels.own.values { own.watch?.stop() }
  }
}
