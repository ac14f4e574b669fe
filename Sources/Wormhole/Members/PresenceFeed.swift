internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A watched member, for a single listener.
final class PresenceFeed: Sendable {
  /// The news for the listener.
  enum PresenceNews {
    case reachability, profile
    /// Each notice, even if neither reachability nor profile has changed.
    case notices
  }

  private let name: String
  private let escaped: String
  private let folder: Container.Folder
  private let storage: Container
  private let interest: PresenceNews
  private let line: LinkLine?
  private let state = Monitor(State())

  private struct State {
    weak var listener: Listener?
    var watch: NamedWatch?
    var linkWatching: (any AnyObject & Sendable)?
    var isOver = false
    /// The index of the next pause, after a notice that the presence was released.
    var nextPause = PresenceFeed.pauses.count
    /// The last reported profile.
    var told: Profile?
    /// The number of readings, by which each notice differs from the one before.
    var readings = 0
  }

  /// The milliseconds between the rescans for a presence that is about to be released.
  ///
  /// The kernel notifies before it releases the lock, and releases it within microseconds; but the
  /// ending thread may be delayed.
  private static let pauses = [1, 2, 5, 10, 20, 50, 100, 200, 500]
  private let worker = Worker(staysOffWatcher: true)

  init(
    _ name: String, _ escaped: String, in folder: Container.Folder, _ storage: Container,
    _ interest: PresenceNews, _ line: LinkLine? = nil
  ) {
    self.folder = folder
    self.line = line
    self.name = name
    self.escaped = escaped
    self.storage = storage
    self.interest = interest
    worker.begin { [weak self] in self?.change() }
  }

  /// Notifies a listener of a member's changes and of its present state.
  static func join(
    _ listener: Listener, _ name: String, in folder: Container.Folder = .members,
    _ storage: Container, _ interest: PresenceNews, _ line: LinkLine? = nil
  ) throws(WormholeError) {
    let escaped = try Container.escape(name)
    let feed = PresenceFeed(name, escaped, in: folder, storage, interest, line)
    feed.state.withLock { $0.listener = listener }
    let watch = try storage.watchPresence(of: name, in: folder) {
      [weak feed] in
      feed?.hear(wasReleased: $0)
    } ended: {
      [weak listener] end in
      listener?.fail(end.error("watch member", name))
    }
    let linkWatching = line?.link.watch { [weak listener] in listener?.change(escaped) }
    feed.state.withLock { state in
      state.watch = watch
      state.linkWatching = linkWatching
    }
    listener.join(escaped, ChangeSource(look: { feed.look() }, leave: { feed.end() }))
    listener.change(escaped)
  }

  private func end() {
    let watch = state.withLock { state in
      state.isOver = true
      return state.watch.take()
    }
    worker.end()
    watch?.stop()
  }

  func hear(wasReleased: Bool) {
    state.withLock { state in
      if wasReleased, !Mutants.has(.noSecondLook) { state.nextPause = 0 }
    }
    change()
  }

  private func change() { state.withLock { $0.listener }?.change(escaped) }

  func look() -> WatchResult {
    let stamp: Stamp
    do throws(WormholeError) {
      if interest == .notices, !Mutants.has(.tellChangesOnly) {
        // The listener reads the member itself; only a release that is not visible yet counts here.
        if awaitsRelease, try FoundMember.isPresent(name, in: storage, folder) {
          planNextLook()
        }
        stamp = nextReading()
      } else {
        let sighting = try FoundMember(name, in: storage, folder)
        if sighting.isPresent { planNextLook() }
        stamp = try self.stamp(of: sighting)
      }
    } catch {
      stamp = interest == .notices ? nextReading() : .failed(error)
    }
    return WatchResult(name: name, stamp: stamp)
  }

  private func stamp(of sighting: FoundMember) throws(WormholeError) -> Stamp {
    switch interest {
    case .reachability:
      let found = sighting.reachability
      return .reachability(line?.isCut == true ? found.whenCut : found)
    case .notices, .profile:
      let profile = try sighting.profile
      return state.withLock { state in
        if let profile {
          state.told = profile
        } else if !sighting.isPresent {
          // A present member without a profile is about to write it.
          state.told = state.told.map { Profile($0, sighting.reachability) }
        }
        return state.told.map { .member($0) } ?? .nothing
      }
    }
  }

  private func nextReading() -> Stamp {
    state.withLock { state in
      state.readings += 1
      return .posted(state.readings)
    }
  }

  /// Whether a notice of a release has arrived, and the presence is read again for a while.
  private var awaitsRelease: Bool { state.withLock { $0.nextPause < Self.pauses.count } }

  /// Plans a rescan if the presence was released and still appears held.
  private func planNextLook() {
    state.withLock { state in
      guard state.nextPause < Self.pauses.count else { return }
      let moment = Instant.now + .milliseconds(Self.pauses[state.nextPause])
      // If an earlier rescan is planned, the earlier rescan plans the next rescan.
      if worker.trigger(at: moment) { state.nextPause += 1 }
    }
  }

  // MARK: Findings

  static let reachability: Interpreter<Reachability> = {
    (finding, pass) throws(WormholeError) in
    switch finding.stamp {
    case .reachability(let reachability): pass(reachability)
    case .failed(let error): throw error
    default: break
    }
  }

  static let notices: Interpreter<Void> = { (_, pass) throws(WormholeError) in pass(()) }

  static let profile: Interpreter<Profile> = { (finding, pass) throws(WormholeError) in
    switch finding.stamp {
    case .member(let profile): pass(profile)
    case .failed(let error): throw error
    default: break
    }
  }
}
