internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The watches of channels.
extension SharedContainer {
  func watching<Value: Codable & Sendable>(
    _ channels: [Channel<Value>], initial: Bool
  ) -> WatchPlan<Snapshot<Value>> {
    WatchPlan(
      seen: initial ? [:] : known(channels.compactMap { try? $0.slot.get() }),
      join: { (listener) throws(WormholeError) in
        for channel in channels { try self.feeds.join(listener, channel.slot.get()) }
      }, interpreter: { self.snapshots() })
  }

  func watching<Value: Codable & Sendable>(
    prefix: String, of type: Value.Type, initial: Bool
  ) -> WatchPlan<Snapshot<Value>> {
    let names = initial ? [] : (try? channels(prefix: prefix)) ?? []
    return WatchPlan(
      seen: known(names.compactMap { try? storage.slot(.channels, $0) }),
      join: { (listener) throws(WormholeError) in
        try self.joinAll(prefix, listener)
      }, interpreter: { self.snapshots() })
  }

  private func known(_ slots: [Slot]) -> [String: Stamp] {
    let limits = options.limits
    return Dictionary(slots.map { ($0.escaped, WatchResult(reading: $0, limits).stamp) }) { $1 }
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
