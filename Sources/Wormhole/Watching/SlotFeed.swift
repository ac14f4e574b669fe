internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The watch of one slot: notifies all listeners of the slot, and reads the slot for the listeners.
final class SlotFeed: Sendable {
  let slot: Slot
  private let limits: PropertyListLimits
  private let time: MailTime
  /// Signals the moment at which the value expires; nil until there is a value that does.
  private let alarm = Monitor<Worker?>(nil)
  /// Without a worker: the machine of each listener permits one reading at a time.
  private let folder = NoticedFolder()
  private let state = Monitor(State())
  /// The last reading, shared by all listeners notified of the same change.
  private let reading = Monitor<(signal: Int, finding: WatchResult)?>(nil)

  private struct State {
    /// The key is the number of joins: a listener that rejoins during its leave has two entries.
    var listeners: [Int: Listener] = [:]
    var joined = 0
    var signals = 0
  }

  /// A change of the wall clock is noticed within this time, in nanoseconds.
  private static let longestPause: Int64 = 10_000_000_000

  init(_ slot: Slot, _ limits: PropertyListLimits, _ time: MailTime) {
    self.slot = slot
    self.limits = limits
    self.time = time
  }

  var listenerCount: Int { state.withLock { $0.listeners.count } }

  /// - Returns: the number by which the listener is removed.
  func add(_ listener: Listener) -> Int {
    state.withLock { state in
      state.joined += 1
      state.listeners[state.joined] = listener
      return state.joined
    }
  }

  /// Returns the removed listener, because it must not be released here, under the locks of
  /// callers.
  func remove(_ number: Int) -> Listener? {
    state.withLock { $0.listeners.removeValue(forKey: number) }
  }

  /// Begins to watch, unless the watch is active.
  func begin() throws(WormholeError) {
    try slot.container.checkOwner("watch", slot.name)
    try folder.begin { _ throws(WormholeError) in
      try slot.watch {
        [weak self] in
        self?.signal()
      } ended: {
        [weak self] in
        self?.fail($0)
      }
    }
  }

  func end() {
    folder.stop()
    alarm.withLock { $0.take() }?.end()
  }

  /// Has all listeners read the slot again when its value expires.
  ///
  /// The alarm is the one of workers, on the threads for later calls: no thread waits for it.
  private func signalExpiry(at until: Date) {
    // A value whose end is no time never expires.
    guard !Mutants.has(.noExpiryAlarm), !until.timeIntervalSinceReferenceDate.isNaN else { return }
    let worker = alarm.withLock { alarm in
      if let alarm { return alarm }
      let worker = Worker(staysOffWatcher: false, time)
      worker.begin { [weak self] in self?.signal() }
      alarm = worker
      return worker
    }
    let now = Date(sinceEpoch: slot.container.options.environment.sinceEpoch())
    let left = Duration.seconds(clamping: until.timeIntervalSince(now)).inNanosecondsClamped
    // A test's clock is set by the test alone.
    let longest = time.moved == nil ? Self.longestPause : .max
    worker.trigger(at: time.now + .nanoseconds(min(max(1_000_000, left), longest)))
  }

  private func signal() {
    let (only, all) = state.withLock { state -> (Listener?, [Listener]) in
      state.signals += 1
      let listeners = state.listeners.values
      return listeners.count == 1 ? (listeners.first, []) : (nil, Array(listeners))
    }
    only?.change(slot.escaped)
    for listener in all { listener.change(slot.escaped) }
  }

  private func fail(_ end: ContainerEnd) {
    // A later listener begins to watch again, and receives the error that there is no container.
    self.end()
    let listeners = state.withLock { Array($0.listeners.values) }
    for listener in listeners { listener.fail(end.error("watch \(slot.title)", slot.name)) }
  }

  /// Has a new listener read the current content.
  func greet(_ listener: Listener) {
    state.withLock { $0.signals += 1 }
    listener.change(slot.escaped)
  }

  func look() -> WatchResult {
    reading.withLock { reading in
      let (signal, isShared) = state.withLock { ($0.signals, $0.listeners.count > 1) }
      if let reading, reading.signal == signal { return reading.finding }
      let finding = WatchResult(reading: slot, limits)
      if let file = finding.file, let until = file.header.until, !file.isExpired {
        signalExpiry(at: until)
      }
      if case .failed = finding.stamp { return finding }
      reading = isShared ? (signal, finding) : nil
      return finding
    }
  }
}

extension SlotFeed {
  /// Returns the finding for a listener that knows the version and now finds nothing; nil if the
  /// listener is not notified.
  ///
  /// A channel is cleared before its removal; the cleared state may be gone before the listener
  /// reads the slot. If the system refuses to read the versions of removed channels for now, the
  /// finding has failed: the listener looks again.
  func loss(after version: Int) -> WatchResult? {
    let latest: Int?
    do throws(WormholeError) {
      latest = try slot.container.presentRemovedVersion()
    } catch {
      let refusal = error.named(slot.name, "read \(slot.title)")
      return WatchResult(name: slot.name, stamp: .failed(refusal), content: .failure(refusal))
    }
    // A file that another tool has removed is not a clear, and is not reported.
    guard let removed = latest, removed > version else { return nil }
    let now = slot.container.options.environment.sinceEpoch()
    return WatchResult(clear: slot.name, removed, Date(sinceEpoch: now), limits)
  }
}

extension WatchResult {
  /// The finding that a slot was cleared, by an unknown process.
  convenience init?(clear name: String, _ version: Int, _ sent: Date, _ limits: PropertyListLimits)
  {
    guard
      let bytes = try? Envelope.seal(
        Envelope.Header(version: version, sent: sent, from: ""), BinaryEncoder(limits: limits)),
      let file = try? Envelope.OpenFile(bytes, BinaryDecoder(limits: limits))
    else { return nil }
    self.init(
      name: name, stamp: .version(version, sent, recovered: false),
      content: .success(.value(bytes, recovered: false)), file: file)
  }

  convenience init(reading slot: Slot, _ limits: PropertyListLimits) {
    let content = Result { () throws(WormholeError) in try slot.read() }
    do throws(WormholeError) {
      let reader = SlotReader(
        limits: limits, name: slot.name, operation: "read channel",
        clock: slot.container.options.environment.sinceEpoch)
      let opened = try reader.open(content.get())
      let stamp: Stamp =
        opened.map { file, isRecovered in
          file.isExpired
            ? .expired(file.header.version, file.header.sent)
            : .version(file.header.version, file.header.sent, recovered: isRecovered)
        } ?? .nothing
      self.init(name: slot.name, stamp: stamp, content: content, file: opened?.file)
    } catch {
      // Watchers are notified of the container's end separately, and once.
      let stamp = error.code == .notAContainer ? Stamp.nothing : .failed(error)
      self.init(name: slot.name, stamp: stamp, content: content)
    }
  }
}

/// The feeds of a container instance: a feed for each watched slot.
final class SlotFeeds: Sendable {
  private let limits: PropertyListLimits
  private let time: MailTime
  private let state = Monitor(State())

  private struct State {
    /// Nil until the first watch, which a program without watches never needs: setting up a
    /// dictionary takes longer than reading a file.
    var feeds: [ObjectIdentifier: SlotFeed]?
  }

  init(_ limits: PropertyListLimits, _ time: MailTime) { (self.limits, self.time) = (limits, time) }

  /// The number of listeners, where a listener counts once for each of its slots.
  var listenerCount: Int {
    state.withLock { ($0.feeds ?? [:]).values.reduce(0) { $0 + $1.listenerCount } }
  }

  /// Adds a listener for a slot's changes, and has it read the current content.
  func join(_ listener: Listener, _ slot: Slot) throws(WormholeError) {
    let (feed, source) = try source(for: listener, slot)
    listener.join(slot.escaped, source)
    feed.greet(listener)
  }

  /// Adds a listener for a slot's changes, until it leaves.
  func source(
    for listener: Listener, _ slot: Slot
  ) throws(WormholeError) -> (SlotFeed, ChangeSource) {
    let (feed, number) = state.withLock { state in
      let feed = state.feeds?[ObjectIdentifier(slot)] ?? SlotFeed(slot, limits, time)
      state.feeds = state.feeds ?? [:]
      state.feeds?[ObjectIdentifier(slot)] = feed
      return (feed, feed.add(listener))
    }
    do throws(WormholeError) {
      try feed.begin()
    } catch {
      leave(feed, number)
      throw error
    }
    let source = ChangeSource(
      look: { feed.look() }, loss: { feed.loss(after: $0) }, leave: { self.leave(feed, number) })
    return (feed, source)
  }

  private func leave(_ feed: SlotFeed, _ number: Int) {
    let (gone, isUnused) = state.withLock { state in
      let gone = feed.remove(number)
      guard gone != nil, feed.listenerCount == 0 else { return (gone, false) }
      state.feeds?[ObjectIdentifier(feed.slot)] = nil
      return (gone, true)
    }
    if isUnused { feed.end() }
    withExtendedLifetime(gone) {}
  }
}
