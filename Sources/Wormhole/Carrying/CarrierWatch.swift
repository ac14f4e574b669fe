internal import WormholeContainerStorage
internal import WormholeSyscalls

/// One watch on all proxies of a carrier: on their inboxes, their receipts, their contexts, the
/// requests to cancel messages in transit, and the wakes.
///
/// The handlers are called on one thread at a time. As everywhere, a notice is a hint: a handler
/// lists the directories of the named proxies.
package final class CarrierWatch: Sendable {
  private struct ProxyWatches {
    var watches: [NamedWatch]
    /// Moves delayed messages to the inbox when they are due, as a receiver would.
    let due: DueMessages
    /// The watch of the record of wakes; nil for a guest.
    let wakes: NamedWatch?

    func stop() {
      for watch in watches { watch.stop() }
      wakes?.stop()
      due.stop()
    }
  }

  private struct State {
    var proxies: [Carrier.Resident: ProxyWatches] = [:]
    var changed: Set<Carrier.Resident> = []
    /// The proxies of members that programs may want to wake.
    var woken: Set<Carrier.Resident> = []
  }

  private let container: SharedContainer
  private let state = Monitor(State())
  private let worker: Worker

  /// - Parameters:
  ///   - wakes: called with the proxies of members that programs of this machine may want to wake.
  ///   - handler: called with the proxies in which something may have changed.
  package init(
    _ carrier: Carrier, wakes: @escaping @Sendable (Set<Carrier.Resident>) -> Void = { _ in },
    _ handler: @escaping @Sendable (Set<Carrier.Resident>) -> Void
  ) {
    container = carrier.container
    worker = Worker(on: container.background)
    worker.begin { [weak self] in
      guard let self else { return }
      let (changed, woken) = state.withLock { state in
        defer { (state.changed, state.woken) = ([], []) }
        return (state.changed, state.woken)
      }
      if !changed.isEmpty { handler(changed) }
      if !woken.isEmpty { wakes(woken) }
    }
  }

  /// Watches a proxy, too.
  ///
  /// The handler is called for the proxy once, as something may wait already.
  package func add(_ proxy: Proxy) throws(WormholeError) {
    let (home, resident) = (proxy.home, proxy.resident)
    let due = DueMessages(home, container, epoch: try proxy.carrier.now.epoch)
    let notice: @Sendable (WatchSignal) -> Void = { [weak self] _ in self?.note(resident) }
    let wakes = try watchWakes(of: resident)
    try naming("watch messages to", proxy.name, at: home) { () throws(Errno) in
      var watches = [
        try home.watch(.inbox, .movedTo, notice),
        try home.watch(.claimed) { signal in
          // The carrier's own claims are no news.
          if case .changed(let names) = signal,
            !names.contains(where: { $0.ends(with: MessageName.cancellationMark) })
          {
            return
          }
          notice(signal)
        },
      ]
      if case .queue = resident {
        let away = try home.away()
        watches.append(try away.watch(.receipts, .movedTo, notice))
        watches.append(try away.watch(.workers, .movedTo, notice))
      } else {
        watches.append(try home.watch(.receipts, .movedTo, notice))
        watches.append(
          try home.watch(.context, .movedTo) { signal in
            if case .changed(let names) = signal,
              !names.contains(where: { $0.ends(with: ContextName.waitingMark) })
            {
              return
            }
            notice(signal)
          })
      }
      try due.begin()
      state.withLock {
        $0.proxies[resident] = ProxyWatches(watches: watches, due: due, wakes: wakes)
      }
    }
    note(resident)
  }

  private func watchWakes(of resident: Carrier.Resident) throws(WormholeError) -> NamedWatch? {
    guard case .member(let name) = resident else { return nil }
    return try WakeRecord.slot(of: name, in: container.storage).watch { [weak self] in
      guard let self else { return }
      state.withLock { _ = $0.woken.insert(resident) }
      worker.trigger()
    }
  }

  /// Watches a proxy no longer.
  package func remove(_ proxy: Proxy) {
    let watched = state.withLock { $0.proxies.removeValue(forKey: proxy.resident) }
    watched?.stop()
  }

  private func note(_ resident: Carrier.Resident) {
    state.withLock { _ = $0.changed.insert(resident) }
    worker.trigger()
  }

  /// Ends the watch; once this has returned, the handler is not called again.
  package func stop() {
    let watched = state.withLock { Array(exchange(&$0.proxies, with: [:]).values) }
    for one in watched { one.stop() }
    worker.end()
    worker.drain()
  }
}
