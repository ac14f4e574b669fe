package import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// A channel of this machine on its way to another home.
struct ChannelMove {
  let machine: String
  /// What the new home gets; nil until the channel is given away.
  var legacy: Carrier.ChannelLegacy?
  var isPublished = false
  var isUnderWay = false
  var retry = Instant.longAgo

  init(to machine: String) { self.machine = machine }
}

/// Moving the home of a channel.
///
/// Only an operator's command on the present home begins a move, as a file that the bridge reads.
/// The bridge then makes the channel a copy, publishes its last content with the IDs of the changes
/// made last, and changes the home's record, in this order. The new home takes the channel when it
/// reads the record. Each step may be repeated, so a bridge that is killed continues.
///
/// A further command for a channel that was given away has no effect, unless the first new home was
/// given up: the record of the first one may be on its way to the servers, and a later content for
/// another machine would keep either of them from taking the channel.
extension Bridge {
  /// Begins the move of a channel whose home is this machine, or the move to this machine of a
  /// channel whose home was given up.
  package static func moveChannel(
    _ name: String, to machine: String, of container: SharedContainer
  ) throws(WormholeError) {
    let operation = "move channel"
    let list = try ChannelList(of: container.storage)
    let isOwn = try Place.read(BridgeFolder(of: container.storage))?.machine == machine
    try list.changing(name, within: .seconds(10)) { () throws(WormholeError) in
      var entry = try list.entry(name)
      let isHome = entry.isHome
      guard isHome != isOwn else {
        throw WormholeError(
          .conflict, operation, name,
          because: isHome ? "this machine is its home already" : "this machine is not its home",
          hint: "run the command on the home, which 'wormhole bridge status' names; if the home is "
            + "lost, give it up with 'wormhole bridge evict', and move the channel to this machine")
      }
      if isHome { entry.move = machine } else { entry.isClaimed = true }
      try list.replace(name, by: entry)
    }
  }

  /// How long the bridge waits for a command that changes the list; then it repeats its step.
  private static let listPatience = Duration.milliseconds(100)

  // MARK: The former home

  func move(channel name: String, _ link: ServerLink, _ subjects: Subjects, _ now: Instant) {
    guard var move = channels.moves[name], !move.isUnderWay, move.retry <= now,
      channels.own[name]?.isPublishing != true, let home = channels.homes[name],
      !channels.inheritances.contains(name)
    else { return }
    do throws(WormholeError) {
      guard home.machine == place.machine else {
        // The record has changed: the channel is a copy from here on.
        return try forget(channel: name, to: home.machine)
      }
      let heir = try heir(ofChannel: name, move)
      if heir != move.machine { move = ChannelMove(to: heir) }
      if move.legacy == nil {
        // A machine that does not exist would never take the channel.
        guard beats[move.machine] != nil else {
          return wait(with: &move, of: name, "the new home, \(move.machine), cannot be reached")
        }
        move.legacy = try carrier.giveAway(name, to: move.machine)
      }
    } catch {
      return wait(with: &move, of: name, error.reason)
    }
    move.isUnderWay = true
    channels.moves[name] = move
    if !move.isPublished, let legacy = move.legacy, let content = legacy.content {
      publish(content, legacy.operations, of: name, to: move.machine, link, subjects)
    } else {
      record(move.machine, as: name, after: home, link, subjects)
    }
  }

  /// The new home of a channel: the machine that has been given the channel, if there is one.
  func heir(ofChannel name: String, _ move: ChannelMove) throws(WormholeError) -> String {
    if move.legacy != nil {
      guard evicted[move.machine] != nil else { return move.machine }
      return try channelList().entry(name).move ?? move.machine
    }
    // Also by a bridge that was killed.
    guard let heir = try carrier.heir(ofChannel: name), evicted[heir] == nil else {
      return move.machine
    }
    return heir
  }

  private func wait(with move: inout ChannelMove, of name: String, _ reason: String) {
    channels.conflicts[name] = "its home is not moved: \(reason)"
    move.retry = .now + .seconds(1)
    channels.moves[name] = move
  }

  private func publish(
    _ content: Carrier.ChannelContent, _ operations: [String: String], of name: String,
    to machine: String, _ link: ServerLink, _ subjects: Subjects
  ) {
    guard let subject = try? subjects.channelCopy(name),
      let bytes = ChannelTraffic.bytes(
        content, of: place.machine, heir: machine, operations, offset: clockOffset ?? 0)
    else { return keep(channel: name) }
    link.jetStream.publish(subject, bytes, within: .seconds(10)) { [weak self, weak link] result in
      guard let self, self.link === link else { return }
      if case .failure(let failure) = result, failure.kind == .tooLarge {
        return self.keep(channel: name)
      }
      self.noteStep(result, on: subject, of: name) { $0.isPublished = true }
    }
  }

  /// Ends the move of a channel whose content cannot be carried: the record still has this machine.
  func keep(channel name: String) {
    guard var move = channels.moves[name], let legacy = move.legacy else { return }
    move.isUnderWay = false
    do throws(WormholeError) {
      try carrier.adopt(legacy, as: name)
      // A later command may name another machine.
      var next: String?
      try channelList().change(name, within: Self.listPatience) { entry in
        if entry.move == move.machine { entry.move = nil }
        next = entry.move
      }
      channels.moves[name] = next.map { ChannelMove(to: $0) }
      channels.conflicts[name] = "its home is not moved: \(ChannelTraffic.excess)"
    } catch {
      wait(with: &move, of: name, error.reason)
    }
  }

  private func record(
    _ machine: String, as name: String, after home: Home, _ link: ServerLink, _ subjects: Subjects
  ) {
    guard let subject = try? subjects.channelRecord(name) else { return }
    link.jetStream.publish(
      subject, expectedLast: home.sequence, Home.bytes(machine, after: home), within: .seconds(10)
    ) { [weak self, weak link] result in
      guard let self, self.link === link else { return }
      // The reader of the records shows the change.
      self.noteStep(result, on: subject, of: name) { $0.retry = .now + .seconds(1) }
    }
  }

  private func noteStep<Success>(
    _ result: Result<Success, RelayFailure>, on subject: String, of name: String,
    _ note: (inout ChannelMove) -> Void
  ) {
    self.note(publish: result, on: subject)
    guard var move = channels.moves[name] else { return }
    move.isUnderWay = false
    switch result {
    case .success: note(&move)
    case .failure: move.retry = .now + .seconds(1)
    }
    channels.moves[name] = move
  }

  private func forget(channel name: String, to machine: String?) throws(WormholeError) {
    var move: String?
    try channelList().change(name, within: Self.listPatience) { entry in
      move = entry.move
      (entry.isHome, entry.move) = (false, nil)
    }
    if let machine, let next = move, next != machine {
      log(
        .warning,
        "the home of channel '\(name)' has moved to machine \(machine), and not to \(next): "
          + "run the command there to move it on")
    }
    channels.own.removeValue(forKey: name)?.watch?.stop()
    channels.moves[name] = nil
    channels.conflicts[name] = nil
    storeCopy(of: name)
  }

  // MARK: The new home

  /// Takes a channel whose home has become this machine.
  ///
  /// The last content of the former home precedes the record in the stream.
  func inherit(channel name: String) {
    channels.inheritances.remove(name)
    guard channels.homes[name]?.machine == place.machine,
      let copy = channels.copies[name], copy.heir == place.machine
    else { return }
    do throws(WormholeError) {
      let list = try channelList()
      let inherited = try list.changing(name, within: Self.listPatience) {
        () throws(WormholeError) -> ChannelList.Entry? in
        // Also for a listed channel: the bridge may have been killed in between.
        let listed = try list.entry(name)
        var entry = listed
        entry.isHome = true
        if let machine = entry.move {
          let present = try container.channel(name, of: PropertyListValue.self).metadata
          // A channel that was taken has a greater version than the content left by the former
          // home: the channel is given away again, before a content of its own was published.
          guard present?.version ?? 0 <= copy.content.version else { return nil }
          // The channel comes back before this machine has ended the move.
          if present?.home == machine { entry.move = nil }
        }
        if entry != listed { try list.replace(name, by: entry) }
        return entry
      }
      guard let entry = inherited else { return }
      // What was left for an earlier heir is older than what comes back.
      channels.moves[name] = entry.move.map { ChannelMove(to: $0) }
      try adopt(name, Carrier.ChannelLegacy(copy.content, copy.operations))
    } catch {
      channels.inheritances.insert(name)
      log(.warning, "\(error)")
      channels.conflicts[name] = error.reason
    }
  }

  private func adopt(_ name: String, _ legacy: Carrier.ChannelLegacy) throws(WormholeError) {
    // With the change that an earlier bridge has asked.
    let queue = try queue(name)
    // The former home has made the change in progress, or will never make it.
    let isMade = queue.current.map { legacy.operations[place.machine] == $0.change.operation }
    // If the file keeps the change, a later home may make the change: the channel is taken later.
    if isMade == false { try queue.forget() }
    try carrier.adopt(legacy, as: name)
    channels.conflicts[name] = nil
    channels.nextLook = .longAgo
    guard let isMade else { return }
    queue.end(
      isMade
        ? Carrier.ChannelAnswer(.made, version: legacy.content?.version ?? 0)
        : Carrier.ChannelAnswer(.unreachable, reason: "the home has moved to this machine"))
  }

  /// Takes a copy whose home was given up, with the content that has arrived here.
  func take(lostChannel name: String, _ link: ServerLink, _ subjects: Subjects) {
    // A record that was under way may name the lost machine after that machine was given up.
    guard let home = channels.homes[name]?.machine, evicted[home] == nil else {
      return claim(channel: name, link, subjects)
    }
    do throws(WormholeError) {
      if home == place.machine {
        try take(lostChannel: name)
      } else {
        channels.conflicts[name] = "its home, machine \(home), was not given up"
      }
    } catch {
      channels.conflicts[name] = error.reason
    }
  }

  /// Takes a copy after the record has named this machine as the home.
  func take(lostChannel name: String) throws(WormholeError) {
    let content = try carrier.content(of: name)
    try channelList().change(name, within: Self.listPatience) { $0.isHome = true }
    try adopt(name, Carrier.ChannelLegacy(content, [:]))
    // A command may have ordered a move since.
    try channelList().change(name, within: Self.listPatience) { $0.isClaimed = false }
    channels.wanted.remove(name)
  }
}
