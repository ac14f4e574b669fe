import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// All watches of a container, for `events`.
///
/// Each handler runs on the thread of its watch and may wait for the output. A slow reader delays
/// the handlers; the watches of channels and members then report the last state only, and a line
/// states that other notices were lost.
final class EventFeed: Sendable {
  struct State {
    var subscriptions: [Subscription] = []
    var folders: [FolderWatch] = []
    var feeds: [DirectoryFeed] = []
    /// By the folder and the name.
    var mailboxes: [String: MailboxFeed] = [:]
    /// By the name of the slot.
    var slots: [String: DirectoryFeed] = [:]
    /// The locks whose watch was refused, which is tried again.
    var unwatchedLocks: Set<String> = []
    /// The holder of each held lock; nil if its mark cannot be read.
    var locks: [String: LockHolder?] = [:]
    /// The locks whose last check has failed.
    var uncheckedLocks: Set<String> = []
    /// The state of each access; nil before the accesses at the start are listed.
    var accesses: [String: String]?
    /// Whether the last check of the accesses has failed.
    var missesAccesses = false
    var members: [String: Profile] = [:]
    var suites: [String: SettingsFeed] = [:]
    /// The suites whose watch was refused, which is tried again, and whether each was there at the
    /// start.
    var unwatchedSuites: [String: Bool] = [:]
    /// The suites whose last reading was refused.
    var unreadSuites: Set<String> = []
    /// When the last loss of notices was reported.
    var lastLoss: Instant?
    /// The names that were there at the start.
    var isStarting = true
  }

  let container: SharedContainer
  let state = Monitor(State())
  /// Held during a check of a lock, from the reading to the line: two threads that check at once
  /// would report in another order than they have read.
  let lockTurn = Monitor(0)
  /// As `lockTurn`, for a check of the accesses.
  let accessTurn = Monitor(0)
  private let wanted: Set<EventKind>
  private let handler: @Sendable (ContainerEvent) -> Void
  private let failure: @Sendable (any Error) -> Void

  /// - Parameters:
  ///   - wanted: the kinds to report.
  ///   - failure: receives an error that ends all watches.
  init(
    _ container: SharedContainer, _ wanted: Set<EventKind>,
    failure: @escaping @Sendable (any Error) -> Void,
    _ handler: @escaping @Sendable (ContainerEvent) -> Void
  ) {
    (self.container, self.wanted) = (container, wanted)
    (self.failure, self.handler) = (failure, handler)
  }

  func tell(_ event: ContainerEvent) { if wanted.contains(event.kind) { handler(event) } }

  /// Starts all watches.
  func start() throws {
    if wanted.contains(.channel) { try watchChannels() }
    try watchNotices()
    if wanted.contains(.member) { try watchMembers() }
    if !wanted.isDisjoint(with: [.message, .context, .worker]) { try watchMailboxes() }
    if !wanted.isDisjoint(with: [.lock, .setting]) { try watchSystem() }
    if wanted.contains(.access) { try watchAccesses() }
    if wanted.contains(.damage) { try watchDamage() }
    state.withLock { $0.isStarting = false }
  }

  private func fail(_ error: WormholeError) {
    if error.code == .notAContainer { failure(error) }
  }

  private func watchChannels() throws {
    let watching = try container.watch(
      prefix: "", of: PropertyListValue.self, initial: false,
      { snapshot in
        let snapshot = UntypedSnapshot(snapshot)
        var event = ContainerEvent(
          .channel, snapshot.value == nil ? "cleared" : "put", snapshot.channel)
        (event.value, event.version) = (snapshot.value, snapshot.metadata.version)
        event.sender = snapshot.metadata.writer
        self.tell(event)
      },
      failure: { error in
        self.fail(error)
        self.tell(ContainerEvent(.channel, "unreadable", error.subject, error.reason))
      })
    state.withLock { $0.subscriptions.append(watching) }
  }

  /// The watch of notices also reports that notices of the kernel were lost, which concerns all
  /// watches.
  private func watchNotices() throws {
    let feed = try DirectoryFeed(
      container.storage, [Container.Folder.notices.rawValue], .touches
    ) { change in
      switch change {
      case .names(let names):
        var seen: Set<String> = []
        for name in names where seen.insert(name).inserted {
          if let name = EscapedName.unescape(name) { self.tell(.init(.notice, "posted", name)) }
        }
      case .replaced:
        for name in (try? self.container.storage.names(in: .notices)) ?? [] {
          self.tell(.init(.notice, "posted", name))
        }
      case .lost: self.tellOfLoss("notices", always: true)
      case .polled: break
      }
    }
    state.withLock { $0.feeds.append(feed) }
  }

  /// Reports a loss of notices, which several watches may report at the same time.
  private func tellOfLoss(_ name: String, always: Bool = false) {
    let isNew = state.withLock { state in
      let now = Instant.now
      guard always || state.lastLoss.map({ now - $0 > .seconds(1) }) ?? true else { return false }
      state.lastLoss = now
      return true
    }
    if isNew { tell(.init(.lost, "lost", name, "events are missing")) }
  }

  // MARK: Members

  private func watchMembers() throws {
    let present = try container.members()
    state.withLock { state in
      for member in present { state.members[member.name] = member }
    }
    let watching = try container.watchMembers(on: nil) { profile in
      let before = self.state.withLock { exchange(&$0.members[profile.name], with: profile) }
      guard let what = Self.change(from: before, to: profile) else { return }
      let who = profile.isRunning ? "\(profile.program) (process \(profile.processID))" : nil
      var event = ContainerEvent(.member, what, profile.name, who)
      event.process = profile.isRunning ? profile.processID : nil
      self.tell(event)
    } failure: {
      self.fail($0)
    }
    state.withLock { $0.subscriptions.append(watching) }
  }

  /// Returns what has happened to a member; nil for nothing.
  private static func change(from before: Profile?, to profile: Profile) -> String? {
    guard let before, before.incarnation == profile.incarnation else {
      return profile.isRunning ? "joined" : before == nil ? nil : "left"
    }
    if before.isRunning != profile.isRunning { return profile.isRunning ? "joined" : "left" }
    if before.isStopped != profile.isStopped, let isStopped = profile.isStopped {
      return isStopped ? "stopped" : "resumed"
    }
    return before.info == profile.info ? nil : "changed"
  }

  // MARK: Messages

  private func watchMailboxes() throws {
    for folder in [Container.Folder.members, .queues] {
      let watch = try container.storage.watchNames(in: folder) { change in
        switch change {
        case .came(let name): self.addMailbox(name, folder)
        case .went(let name):
          self.state.withLock { $0.mailboxes.removeValue(forKey: "\(folder)/\(name)") }?.stop()
        }
      }
      state.withLock { $0.folders.append(watch) }
    }
  }

  private func addMailbox(_ name: String, _ folder: Container.Folder) {
    let isNew = state.withLock { !$0.isStarting }
    do {
      let feed = try MailboxFeed(name, folder, in: container, isNew: isNew) { event in
        self.tell(event, name)
      }
      state.withLock { $0.mailboxes["\(folder)/\(name)"] = feed }
    } catch {
      tell(.init(.lost, "unreadable", name, Failure(error).reason))
    }
  }

  private func tell(_ event: MailboxFeed.Event, _ name: String) {
    switch event.step {
    case .workerJoined: tell(.init(.worker, "joined", name))
    case .workerLeft: tell(.init(.worker, "left", name))
    case .lost: tellOfLoss(name)
    case .context:
      var told = ContainerEvent(.context, "set", name)
      told.sender = event.sender
      tell(told)
    default:
      var told = ContainerEvent(.message, event.step.rawValue, name)
      (told.id, told.sender) = (event.id, event.sender)
      told.attempt = event.attempt == 0 ? nil : event.attempt
      tell(told)
    }
  }

  func stop() {
    let state = state.withLock { exchange(&$0, with: State()) }
    for one in state.subscriptions { one.stop() }
    for one in state.folders { one.stop() }
    for one in state.feeds + state.slots.values { one.stop() }
    for one in state.suites.values { one.watch.stop() }
    for one in state.mailboxes.values { one.stop() }
  }
}
