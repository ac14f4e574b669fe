package import FoundationEssentials
public import WormholeContainerStorage
internal import WormholeSyscalls

/// The name was used too recently to be removed.
private struct StillInUse: Error {}

extension SharedContainer {
  /// Removes a channel permanently, with all its stored values; false if there is none.
  ///
  /// The channel is cleared first, and its watchers are notified. Watches continue, and report the
  /// channel when it is written again. Its versions do not start over, and no process meets a known
  /// version twice: from now on, a channel that is written for the first time in this container
  /// begins with a greater version than all removed values.
  ///
  /// A process that changes the channel at that moment loses nothing. Its change comes before the
  /// removal, and is removed too, or comes after the removal, and remains. The removal is refused
  /// if a foreign file is in the channel's directory.
  @discardableResult
  public func removeChannel(_ name: String) throws(WormholeError) -> Bool {
    try remove("remove channel", name, storage.slot(.channels, name))
  }

  /// Removes a channel as `removeChannel(_:)` does, if its last change is not later than a moment.
  ///
  /// A value that cannot be read may be new, and stays.
  package func removeChannel(
    _ name: String, writtenBefore latest: Date
  ) throws(WormholeError) -> Bool {
    try remove("remove channel", name, storage.slot(.channels, name), writtenBefore: latest)
  }

  /// Removes a suite as `removeDefaults(_:)` does, if its last change is not later than a moment.
  ///
  /// Settings that cannot be read may be new, and stay.
  package func removeDefaults(
    _ suite: String, writtenBefore latest: Date
  ) throws(WormholeError) -> Bool {
    try remove("remove suite", suite, defaults(suite).slot.get(), writtenBefore: latest)
  }

  /// Returns when a member has joined, left or got a message last, or when a message has entered or
  /// left a queue; nil if there is no such member or queue.
  package func lastUse(
    of name: String, in folder: Container.Folder
  ) throws(WormholeError) -> Date? {
    guard let home = try storage.existingMember(name, in: folder) else { return nil }
    return try naming("read the last use of", name, at: home) { () throws(Errno) in
      let presence = (try? home.home.descriptor.status(of: MemberDirectory.presenceName))?.modified
      let joined = try home.readProfile().profile?.since.timeIntervalSince1970 ?? 0
      var latest = max(presence ?? 0, Int64(exactly: (joined * 1e9).rounded()) ?? 0)
      for part in [MemberDirectory.Part.inbox, .later, .claimed, .dead] {
        latest = max(latest, try home.lastChange(of: part) ?? 0)
      }
      return Date(sinceEpoch: latest)
    }
  }

  /// Removes the settings of a suite permanently; false if there are none.
  ///
  /// As `removeChannel(_:)`. Watchers of a key are notified of its removal.
  @discardableResult
  public func removeDefaults(_ suite: String) throws(WormholeError) -> Bool {
    do throws(WormholeError) {
      return try remove("remove suite", suite, defaults(suite).slot.get())
    } catch {
      throw error.named(suite, "remove suite")
    }
  }

  private func remove(
    _ operation: String, _ name: String, _ slot: Slot, writtenBefore latest: Date? = nil
  ) throws(WormholeError) -> Bool {
    if let home = try slot.home() { throw home.refusal(operation, name) }
    let writer = SlotWriter(slot, of: self, name: name)
    let reader = SlotReader(
      limits: options.limits, name: name, operation: operation,
      clock: options.environment.sinceEpoch)
    let nothing: Int? = nil
    do {
      return try slot.remove(
        operation, durability: options.durability, patience: patience
      ) { content in
        // Under the lock, so that no change is removed that comes in the meantime.
        if let latest, isLater(content, than: latest, reader) { throw StillInUse() }
        let count = try writer.count(content)
        return (try writer.seal(nothing, count, operation), count.next)
      }
    } catch is StillInUse {
      return false
    } catch {
      return try WormholeError.writing(operation, name) { throw error }
    }
  }

  /// Whether a value was written after a moment, or may have been, as it cannot be read.
  private func isLater(_ content: Slot.Content, than moment: Date, _ reader: SlotReader) -> Bool {
    do throws(WormholeError) {
      guard let metadata = try reader.metadata(of: content) else { return false }
      // An earlier value that stands in for a damaged one says nothing of the damaged one's time.
      return metadata.isRecovered || metadata.writtenAt > moment
    } catch {
      return true
    }
  }

  // MARK: Members

  /// Removes a member whose name no process uses any more, with all data about the member.
  ///
  /// The data are the profile, the registered start, and the contexts from peers. Returns false
  /// without such a member.
  ///
  /// The removal is refused while the member runs, and while messages wait for it or are dead
  /// letters: receive, cancel or discard the messages first. Expired messages do not count. A
  /// process that joins under the name at that moment, or sends a message to the name, loses
  /// nothing: the member exists again in this case.
  @discardableResult
  public func removeMember(_ name: String) throws(WormholeError) -> Bool {
    // Listing the queue ends the expired messages, which the listing does not show.
    _ = try peer(name).queue
    return try storage.removeMember(name)
  }
}

/// Async overloads of calls that wait or sync, off the threads of the pool.
extension SharedContainer {
  /// Removes a channel permanently, with all its stored values; false if there is none.
  ///
  /// As the overload without `await`, off the task's thread. If the task is cancelled during the
  /// wait, nothing is removed.
  @discardableResult
  public func removeChannel(_ name: String) async throws(WormholeError) -> Bool {
    let lane = OffPool.Lane(try? storage.slot(.channels, name), within: options.timeout)
    return try await OffPool.run("remove channel", name, in: lane) { () throws(WormholeError) in
      try self.removeChannel(name)
    }
  }

  /// Removes the settings of a suite permanently; false if there are none.
  ///
  /// As the overload without `await`, off the task's thread. If the task is cancelled during the
  /// wait, nothing is removed.
  @discardableResult
  public func removeDefaults(_ suite: String) async throws(WormholeError) -> Bool {
    let lane = OffPool.Lane(try? defaults(suite).slot.get(), within: options.timeout)
    return try await OffPool.run("remove suite", suite, in: lane) { () throws(WormholeError) in
      try self.removeDefaults(suite)
    }
  }

  /// Removes a member whose name no process uses any more, with all data about the member.
  ///
  /// As the overload without `await`, off the task's thread.
  @discardableResult
  public func removeMember(_ name: String) async throws(WormholeError) -> Bool {
    try await OffPool.run("remove member", name) { () throws(WormholeError) in
      try self.removeMember(name)
    }
  }
}
