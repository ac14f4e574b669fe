internal import FoundationEssentials
package import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// Channels with a home on one machine, and copies on the others.
///
/// A ``ChannelList`` has the channels of this machine. `wormhole bridge channel` adds channels, and
/// moves them.
/// The home's bridge writes the home's record once, and publishes the latest content of the channel
/// as another record of the group. All machines read the records.
extension Bridge {
  /// Makes this machine the home of a channel; false if the channel was named before.
  package static func addChannel(
    _ name: String, of container: SharedContainer
  ) throws(WormholeError) -> Bool {
    let operation = "carry channel"
    _ = try Subjects.part(name)
    if let home = try container.storage.slot(.channels, name).home() {
      throw WormholeError(
        .conflict, operation, name, because: home.reason,
        hint: "name the channel on that machine")
    }
    let list = try ChannelList(of: container.storage)
    return try list.changing(name, within: .seconds(10)) { () throws(WormholeError) in
      var entry = try list.entry(name)
      guard !entry.isHome else { return false }
      entry.isHome = true
      try list.replace(name, by: entry)
      return true
    }
  }

  // MARK: At home

  /// Publishes the changed channels of this machine.
  func carryChannels(_ link: ServerLink, _ now: Instant) {
    guard link.records?.isCaughtUp == true, let subjects = link.subjects else { return }
    channels.forgetStrays()
    if channels.nextLook <= now {
      channels.nextLook = now + .seconds(1)
      lookAtList()
      readChanges()
      for name in channels.inheritances { inherit(channel: name) }
    }
    for name in channels.wanted { take(lostChannel: name, link, subjects) }
    for name in channels.own.keys {
      if channels.moves[name] != nil, channels.homes[name] != nil {
        move(channel: name, link, subjects, now)
      } else {
        // The servers may lose the record of a channel that moves, too.
        claim(channel: name, link, subjects)
      }
      if channels.homes[name]?.machine == place.machine, channels.mayPublish(name) {
        publish(channel: name, link, subjects, now)
      }
    }
  }

  /// The time at which a channel may be published again.
  var nextChannel: Instant? {
    guard link?.records?.isCaughtUp == true else { return nil }
    let own = channels.own.filter { name, one in
      one.isDirty && !one.isPublishing && channels.homes[name]?.machine == place.machine
        && channels.mayPublish(name)
    }
    let changes = channels.queues.filter { name, queue in
      queue.current != nil && !queue.isAsking
        && (channels.homes[name]?.machine).map { beats[$0] != nil } ?? false
    }
    let moves = channels.moves.filter { name, move in
      !move.isUnderWay && channels.homes[name] != nil && channels.own[name]?.isPublishing == false
        && !channels.inheritances.contains(name)
    }
    return (own.values.map(\.next) + changes.values.map(\.retry) + moves.values.map(\.retry)).min()
  }

  func lookAtList() {
    attempt { () throws(WormholeError) in
      let list = try channelList()
      // A file that appears while the list is read may leave the time as it is: so the list is read
      // once more at the next look.
      let modified = try list.modified()
      let isNew = channels.listed != modified
      guard isNew || !channels.isListed else { return }
      let (entries, errors) = try list.entries()
      // A channel whose file cannot be read stays as it is.
      let unreadWanted = channels.wanted.filter { errors[$0] != nil }
      channels.wanted = Set(entries.filter(\.value.isClaimed).keys).union(unreadWanted)
      var unread = errors
      for (name, entry) in entries {
        // What was given away goes where the first command has sent it.
        if let machine = entry.move, channels.moves[name]?.machine != machine,
          channels.moves[name]?.legacy == nil
        {
          channels.moves[name] = ChannelMove(to: machine)
        }
        guard entry.isHome, channels.own[name] == nil else { continue }
        do throws(WormholeError) {
          try begin(channel: name)
        } catch {
          unread[name] = error
        }
      }
      for error in channels.unread.replace(by: unread) { log(.warning, "\(error)") }
      // After an error that passes, the time is the same.
      (channels.listed, channels.isListed) = (modified, !isNew && unread.isEmpty)
    }
  }

  func channelList() throws(WormholeError) -> ChannelList {
    if let list = channels.list { return list }
    let list = try ChannelList(of: container.storage)
    channels.list = list
    return list
  }

  private func begin(channel name: String) throws(WormholeError) {
    var own = ChannelTraffic.Own()
    own.watch = try container.channel(name, of: PropertyListValue.self).watch {
      [news] _ in news.note(channel: name)
    }
    if let copy = channels.copies[name], copy.machine == place.machine {
      own.stored = copy.content.version
    }
    channels.own[name] = own
    link?.nextBeat = .longAgo
  }

  func claim(channel name: String, _ link: ServerLink, _ subjects: Subjects) {
    let home = channels.homes[name]
    if let machine = home?.machine, evicted[machine] == nil {
      if machine != place.machine {
        channels.conflicts[name] = "its home is machine \(machine), too"
      }
      return
    }
    guard !channels.claims.contains(name), link.nextHomeClaim <= .now,
      let subject = try? subjects.channelRecord(name)
    else { return }
    channels.claims.insert(name)
    link.jetStream.publish(
      subject, expectedLast: home?.sequence ?? channels.unreadableHomes[name] ?? 0,
      Home.bytes(place.machine, after: home), within: .seconds(10)
    ) { [weak self, weak link] result in
      if case .failure = result { self?.channels.claims.remove(name) }
      self?.note(claim: result, on: subject, link)
    }
  }

  private func publish(
    channel name: String, _ link: ServerLink, _ subjects: Subjects, _ now: Instant
  ) {
    guard var own = channels.own[name], own.isDirty, !own.isPublishing, own.next <= now,
      let subject = try? subjects.channelCopy(name)
    else { return }
    own.isDirty = false
    own.next = now + ChannelTraffic.pause
    channels.own[name] = own
    let content: Carrier.ChannelContent?
    do throws(WormholeError) {
      content = try carrier.content(of: name)
    } catch {
      channels.conflicts[name] = error.reason
      channels.own[name]?.isDirty = true
      channels.own[name]?.next = now + .seconds(1)
      return
    }
    channels.own[name]?.version = content?.version
    guard let content, content.version != own.stored else {
      // A read has failed before, and nothing was to be published: no publish ends the trouble.
      if channels.moves[name] == nil { channels.conflicts[name] = nil }
      return
    }
    guard
      let bytes = ChannelTraffic.bytes(content, of: place.machine, offset: clockOffset ?? 0)
    else {
      channels.conflicts[name] = "it has a value that cannot be carried"
      return
    }
    channels.own[name]?.isPublishing = true
    link.jetStream.publish(subject, bytes, within: .seconds(10)) { [weak self, weak link] result in
      guard let self, self.link === link else { return }
      self.channels.own[name]?.isPublishing = false
      switch result {
      case .success:
        self.channels.own[name]?.stored = content.version
        // A move that waits has a reason of its own.
        if self.channels.moves[name] == nil { self.channels.conflicts[name] = nil }
        self.note(publish: result, on: subject)
      case .failure(let failure) where failure.kind == .tooLarge:
        // The end of a move has a longer reason.
        guard self.channels.conflicts[name]?.contains(ChannelTraffic.excess) != true else { return }
        self.channels.conflicts[name] = ChannelTraffic.excess
      case .failure:
        self.channels.own[name]?.isDirty = true
        self.channels.own[name]?.next = .now + .seconds(1)
        self.note(publish: result, on: subject)
      }
    }
  }

  /// What the next heartbeat states: the version of each channel of this machine.
  var channelVersions: [String: Int] { channels.own.compactMapValues(\.version) }

  // MARK: Records

  func take(channelHome name: String, _ message: StreamMessage) {
    note(channelHome: name, message)
    if channels.homes[name]?.machine != place.machine { channels.claims.remove(name) }
    inherit(channel: name)
    storeCopy(of: name)
  }

  /// Notes a home record; the home claims an unreadable record as a lost record.
  private func note(channelHome name: String, _ message: StreamMessage) {
    channels.homes[name] = Home(message)
    guard channels.homes[name] == nil else { return channels.unreadableHomes[name] = nil }
    // The servers compare the position of a claim with that of the record.
    guard channels.unreadableHomes.updateValue(message.sequence, forKey: name) == nil else {
      return
    }
    log(.warning, "cannot carry channel '\(name)': \(Home.unreadable)")
  }

  func take(channelCopy name: String, _ message: StreamMessage) {
    // The home's record is there before the first content.
    guard !channels.hasReadRecords || channels.hasHomeRecord(name) || Mutants.has(.keepStrays)
    else { return }
    guard
      let copy = ChannelTraffic.copy(
        message.payload, at: Int64(clamping: message.timestamp), offset: clockOffset ?? 0)
    else {
      return log(.warning, "the content of channel '\(name)' cannot be read, and is not stored")
    }
    channels.copies[name] = copy
    if copy.machine == place.machine {
      channels.own[name]?.stored = copy.content.version
      channels.own[name]?.isDirty = true
    } else {
      storeCopy(of: name)
    }
  }

  /// The servers have lost all records but the given ones.
  func forgetLostChannels(_ given: Set<String>, _ subjects: Subjects) {
    let named = channels.claims.union(channels.homes.keys).union(channels.unreadableHomes.keys)
    for name in named {
      guard let subject = try? subjects.channelRecord(name), !given.contains(subject) else {
        continue
      }
      (channels.homes[name], channels.unreadableHomes[name]) = (nil, nil)
      channels.claims.remove(name)
    }
    for name in channels.own.keys {
      guard let subject = try? subjects.channelCopy(name), !given.contains(subject) else {
        continue
      }
      channels.own[name]?.stored = nil
      channels.own[name]?.isDirty = true
      channels.moves[name]?.isPublished = false
    }
  }

  /// A new connection: what was under way to the servers has an unknown end.
  func beginChannels() {
    channels.claims = []
    (channels.homes, channels.unreadableHomes) = ([:], [:])
    channels.hasReadRecords = false
    for name in channels.moves.keys {
      channels.moves[name]?.isUnderWay = false
      channels.moves[name]?.isPublished = false
    }
    for name in channels.own.keys {
      channels.own[name]?.isPublishing = false
      channels.own[name]?.stored = nil
      channels.own[name]?.isDirty = true
    }
  }

  // MARK: Copies

  /// The home has stated which versions are its latest ones.
  func confirmCopies(_ versions: [String: Int], of machine: String) {
    for (name, version) in versions {
      guard let copy = channels.copies[name], copy.machine == machine,
        copy.content.version == version
      else { continue }
      channels.stated[name] = Date()
      storeCopy(of: name, isLatest: true)
    }
  }

  func storeCopy(of name: String, isLatest: Bool = false) {
    guard let machine = channels.homes[name]?.machine, machine != place.machine,
      channels.own[name] == nil
    else { return }
    let copy = channels.copies[name].flatMap { $0.machine == machine ? $0 : nil }
    do throws(WormholeError) {
      if let copy, !isLatest, try isOlder(copy, name, machine) { return }
      if channels.desk == nil { channels.desk = try changeDesk() }
      var since: Date?
      if let copy, !isLatest { since = try date(of: copy, name) }
      try carrier.store(
        copy?.content, of: name, from: machine, changesTo: channels.desk,
        since: since)
      channels.conflicts[name] = nil
    } catch {
      if channels.conflicts[name] != error.reason { log(.warning, "\(error)") }
      channels.conflicts[name] = error.reason
    }
  }

  /// Whether the servers were restored from a backup, and have an earlier content than this
  /// machine.
  private func isOlder(
    _ copy: ChannelTraffic.Copy, _ name: String, _ machine: String
  ) throws(WormholeError) -> Bool {
    let known = try container.channel(name, of: PropertyListValue.self).metadata
    guard let known, known.home == machine else { return false }
    return known.version > copy.content.version
  }

  /// When the home published the content, or a later statement of the home about it.
  private func date(of copy: ChannelTraffic.Copy, _ name: String) throws(WormholeError) -> Date {
    let date = Date(
      timeIntervalSince1970: Double(min(now, copy.at &- (clockOffset ?? 0))) / 1e9)
    let known = try container.storage.slot(.channels, name).home()
    guard let known, known.version == copy.content.version, let since = known.since else {
      return date
    }
    return max(date, since)
  }

  private func changeDesk() throws(WormholeError) -> ChangeDesk {
    try carrier.takeChanges { [news] change, answer in news.note(change: change, answer) }
  }

  var channelStatus: [String: PropertyListValue] {
    var list: [String: PropertyListValue] = [:]
    let names = Set(channels.own.keys).union(channels.homes.keys)
      .union(channels.unreadableHomes.keys)
    for name in names.union(channels.conflicts.keys).union(channels.unread.reasons.keys) {
      var one: [String: PropertyListValue] = [:]
      one["home"] = (channels.homes[name]?.machine).map { .string($0) }
      let version = channels.own[name].map(\.version) ?? channels.copies[name]?.content.version
      one["version"] = version.map { .integer(Int64($0)) }
      one["published"] = channels.own[name]?.stored.map { .integer(Int64($0)) }
      one["stated"] = channels.stated[name].map { .date($0) }
      let unreadable = channels.unreadableHomes[name].map { _ in Home.unreadable }
      let trouble = channels.unread.reasons[name] ?? unreadable ?? channels.conflicts[name]
      one["trouble"] = trouble.map { .string($0) }
      list[name] = .dictionary(one)
    }
    return list
  }
}
