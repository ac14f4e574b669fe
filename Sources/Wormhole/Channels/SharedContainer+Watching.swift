internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The watches of channels.
extension SharedContainer {
  func watching<Value: Codable & Sendable>(
    _ channels: [Channel<Value>], initial: Bool
  ) -> WatchPlan<Snapshot<Value>> {
    let known: Result<[String: Stamp], WormholeError> =
      initial ? .success([:]) : self.known { channels.compactMap { try? $0.slot.get() } }
    return WatchPlan(
      seen: (try? known.get()) ?? [:],
      join: { (listener) throws(WormholeError) in
        _ = try known.get()
        for channel in channels { try self.feeds.join(listener, channel.slot.get()) }
      }, interpreter: { self.snapshots() })
  }

  func watching<Value: Codable & Sendable>(
    prefix: String, of type: Value.Type, initial: Bool
  ) -> WatchPlan<Snapshot<Value>> {
    let known: Result<[String: Stamp], WormholeError> =
      initial
      ? .success([:])
      : self.known { () throws(WormholeError) in
        try channels(prefix: prefix).compactMap { try? storage.slot(.channels, $0) }
      }
    return WatchPlan(
      seen: (try? known.get()) ?? [:],
      join: { (listener) throws(WormholeError) in
        _ = try known.get()
        try self.joinAll(prefix, listener)
      }, interpreter: { self.snapshots() })
  }

  /// The content that is no news for a watch without an initial call.
  ///
  /// If the system refuses a reading, the watch does not begin: the unknown value would be news
  /// later.
  private func known(
    _ slots: () throws(WormholeError) -> [Slot]
  ) -> Result<[String: Stamp], WormholeError> {
    Result { () throws(WormholeError) in
      var known: [String: Stamp] = [:]
      for slot in try slots() {
        let stamp = WatchResult(reading: slot, options.limits).stamp
        if case .failed(let error) = stamp, error.code == .exhausted { throw error }
        known[slot.escaped] = stamp
      }
      return known
    }
  }

  private func snapshots<Value: Codable & Sendable>() -> Interpreter<Snapshot<Value>> {
    let limits = options.limits
    let clock = options.environment.sinceEpoch
    return { (finding, pass) throws(WormholeError) in
      let reader = SlotReader(
        limits: limits, name: finding.name, operation: "read channel", clock: clock)
      guard let (file, isRecovered) = try reader.open(finding) else { return }
      pass(try reader.snapshot(of: file, isRecovered: isRecovered))
    }
  }

  /// Adds a listener for all channels with the prefix, including channels that are made later.
  private func joinAll(_ prefix: String, _ listener: Listener) throws(WormholeError) {
    try WormholeError.checkNoCopy("watch channels with", prefix)
    let (storage, feeds, queue) = (storage, feeds, background)
    let watch = try storage.watchNames(in: .channels) { [weak listener] change in
      switch change {
      case .came(let name) where name.begins(with: prefix):
        listener?.joinSoon(name, of: storage, on: queue, about: LogSubject(channel: name)) {
          (listener) throws(WormholeError) in
          try feeds.join(listener, storage.slot(.channels, name))
        }
      case .went(let name) where name.begins(with: prefix):
        queue.soon { [weak listener] in
          if let file = try? Container.escape(name) { listener?.leaveOnceGone(file) }
        }
      default: break
      }
    } ended: { [weak listener] end in
      listener?.fail(end.error("watch channels with prefix", prefix))
    }
    listener.keep(watch)
  }
}
