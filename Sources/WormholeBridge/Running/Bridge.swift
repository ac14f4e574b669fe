internal import FoundationEssentials
package import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
package import WormholeRelay
internal import WormholeSyscalls

/// Carries members and messages between this container and those of other machines, over the
/// servers at one address.
///
/// One thread does everything: it reads the connection, looks at what other threads have noticed in
/// the container, moves the flows on, and waits. Nothing is kept in memory that decides about a
/// message. If a step fails, the flow concerned is read from its files again, as after a kill.
package final class Bridge {
  package struct Settings: Sendable {
    package var group: String
    package var address: RelayAddress
    package var token: String?
    /// The domain of the servers' JetStream, if the server on this machine does not state it.
    package var domain: String?
    /// Whether the servers may do without a token, so that every user of this machine can publish.
    package var allowsOpenServer = false
    /// How long the first connection may take.
    package var patience: Duration? = nil
    /// The local members that bridges of other machines may wake.
    package var mayWake: Set<String> = []

    package init(group: String, address: RelayAddress) {
      (self.group, self.address) = (group, address)
    }
  }

  /// A flow in each direction, with one other machine.
  final class Pair {
    let out: OutFlow
    let incoming: InFlow
    /// Whether something may wait for the machine at any proxy.
    var isDirty = true
    /// The proxies with new messages, outcomes or requests to cancel.
    var changed: Set<Carrier.Resident> = []
    var isPublishing = false
    /// The next time to look although nothing arrives, and the pause after a failure.
    var due: Instant?
    var pause = Duration.milliseconds(100)
    /// When the other machine last confirmed something, or was asked.
    var lastProgress: Instant
    /// Bundles of a flow that its machine has not acknowledged yet.
    var held: [(FlowBundle, Int64)] = []
    var isAsking = false
    var isVerifying = false
    var nextQuestion = Instant.longAgo
    /// When a bundle is published again that the servers have not acknowledged.
    var retry: Instant?

    init(_ machine: String, _ residents: Residents) throws(WormholeError) {
      out = try OutFlow(to: machine, residents)
      incoming = try InFlow(from: machine, residents, out.refusals)
      incoming.isFree = { [weak out] in try out?.isFree($0) ?? true }
      incoming.endTransfer = { [weak out] entry throws(WormholeError) in
        try out?.endTransfer(of: entry)
      }
      lastProgress = .longAgo
    }
  }

  let settings: Settings
  let container: SharedContainer
  let news: BridgeNews
  let folder: BridgeFolder
  let carrier: Carrier
  let residents: Residents
  let traffic = RequestTraffic()
  let channels = ChannelTraffic()
  let queues = QueueTraffic()
  var wakes = WakeTraffic()
  /// Start members of this machine for other machines.
  var wakers: [String: WakeWorker] = [:]
  let log: (LogLevel, String) -> Void
  private let watch: CarrierWatch
  private let lock: BridgeLock
  private let isReady: () -> Void

  var place: Place
  /// The nonce of this process.
  let nonce: String
  let began: Date
  var pairs: [String: Pair] = [:]
  /// What this process has seen of each flow, also after a failure.
  var tallies: [String: FlowTally] = [:]
  /// The machines of pairs that have failed, and when they are read again.
  var failed: [String: (until: Instant, pause: Duration, reason: String)] = [:]
  /// The position in the stream of flows, and the stream.
  var position: (stream: String, sequence: UInt64)?
  var locals: [String: Profile] = [:]
  /// Members of this machine that could not be looked at, and when they are looked at again.
  var unseen: [String: (until: Instant, pause: Duration)] = [:]
  var beats: [String: Heartbeat] = [:]
  /// The homes of members, as the servers have them.
  var homes: [String: Home] = [:]
  /// The positions of home records that cannot be read, by member.
  var unreadableHomes: [String: UInt64] = [:]
  /// Members of this machine that have received messages since their inboxes were counted, and
  /// those whose inboxes are full.
  var delivered: Set<String> = []
  var full: Set<String> = []
  var nextSweep = Instant.longAgo
  /// Machines that were given up, and those whose messages here could not be taken back yet.
  var evicted: [String: MachineRecord.Fate] = [:]
  var unsettled: Set<String> = []
  /// Machines whose bundles wait for records that this machine has not read: the position that was
  /// awaited first, and since when.
  var awaited: [String: (position: Int, since: Instant)] = [:]
  /// Members that two machines have, and why.
  var conflicts: [String: String] = [:]
  var recorded: (record: MachineRecord, sequence: UInt64)?
  var end: BridgeEnd?
  var trouble: String?
  /// The subject of the latest publish that has failed, and the trouble that was noted of it.
  var unpublished: (subject: String, trouble: String)?
  var link: ServerLink?
  /// When this machine started, by the servers' clock, in nanoseconds since 1970.
  ///
  /// Setting the machine's clock does not change the value.
  var bootTime: Int64?
  /// When this machine started, by its own clock at the moment at which ``bootTime`` was read.
  ///
  /// Earlier if the clock was set back since.
  var ownBootTime: Int64?
  /// The sequence number of the latest record of this start that was read.
  var clockRecord: UInt64?
  /// When the bridge has last sent the record of its start to the servers.
  ///
  /// In nanoseconds since this machine started: the machine may sleep until the record is read.
  var claimed: Int64?
  private var wasReady = false
  var hasStarted = false
  var hasCheckedRights = false
  private var nextStatus = Instant(nanoseconds: 0)
  /// What was last written, and when.
  var written: (status: [String: PropertyListValue], at: Instant)?
  var writtenPosition: (stream: String, sequence: UInt64)?

  /// Opens the bridge's files.
  ///
  /// - Parameter isReady: called once, after the first connection serves.
  package init(
    _ container: SharedContainer, _ settings: Settings, _ news: BridgeNews, _ lock: BridgeLock,
    isReady: @escaping () -> Void = {}
  ) throws(WormholeError) {
    (self.container, self.settings, self.news, self.isReady) = (container, settings, news, isReady)
    let storage = container.storage
    log = { level, text in storage.log(level, text) }
    folder = try BridgeFolder(of: storage)
    self.lock = lock
    place = try Place.open(folder, group: settings.group, storage.options.environment)
    nonce = storage.options.environment.randomName()
    began = Date()
    carrier = try Carrier(container)
    watch = CarrierWatch(carrier, wakes: { news.note(woken: $0) }, { news.note($0) })
    carrier.takeRequests { news.note(request: $0) }
    residents = try Residents(container, carrier, watch)
    position = Self.readPosition(folder)
    residents.home = { [weak self] in self?.home(of: $0) }
    residents.formerHomes = { [weak self] in self?.homes[$0]?.before ?? [] }
    residents.formerQueueHomes = { [queues] in queues.entries[$0]?.before ?? [] }
    try container.watchMembers { profile in news.note(member: profile.name) }
  }

  /// Does a part of the work whose failure holds up no other part, and is only logged.
  func attempt(_ body: () throws(WormholeError) -> Void) {
    do throws(WormholeError) {
      try body()
    } catch {
      log(.warning, "\(error)")
    }
  }

  // MARK: The loop

  /// Carries until ``BridgeNews/stop()``.
  ///
  /// - Throws: ``BridgeEnd`` if the bridge must not continue.
  package func run() throws {
    defer { finish() }
    let patienceEnd = settings.patience.map { Instant.now + $0 }
    var pause = Duration.milliseconds(50)
    while true {
      let connection: RelayConnection
      do throws(RelayFailure) {
        connection = try connect()
      } catch {
        try note(failure: error, patienceEnd)
        if try waits(pause) { return }
        pause = min(pause * 2, .seconds(2))
        continue
      }
      let link = ServerLink(connection)
      self.link = link
      defer { link.stop() }
      let isOver = try serve(link, patienceEnd)
      self.link = nil
      showNobody()
      if isOver { return }
      if wasReady { pause = .milliseconds(50) }
      wasReady = false
      if try waits(pause) { return }
      pause = min(pause * 2, .seconds(2))
    }
  }

  private func connect() throws(RelayFailure) -> RelayConnection {
    var options = RelayConnection.Options(name: "wormhole")
    options.token = settings.token
    options.domain = settings.domain
    options.inbox = "_INBOX.\(place.machine)"
    options.allowsOpenServer = settings.allowsOpenServer
    let connection = try RelayConnection(settings.address, options)
    connection.onPermissionError = { [weak self] failure in self?.take(refusal: failure) }
    return connection
  }

  /// Serves a connection until it ends; returns whether the bridge ends, too.
  private func serve(_ link: ServerLink, _ patienceEnd: Instant?) throws -> Bool {
    while true {
      let now = Instant.now
      link.connection.proceed(now)
      // Before the flows move: news must not wait for the next event.
      let news = news.take()
      if news.isOver { return true }
      take(news, now)
      lookAgain(now)
      switch link.connection.state {
      case .closed(let failure):
        try note(failure: failure, patienceEnd)
        return false
      case .connecting: break
      case .ready: try proceed(link, now)
      }
      if let end { throw end }
      if let patienceEnd, patienceEnd < now, !hasStarted {
        throw BridgeEnd(.unavailable, trouble ?? "the servers do not answer")
      }
      if nextStatus <= now {
        writeStatus()
        nextStatus = now + .seconds(1)
      }
      try wait(until: deadline(link, now))
    }
  }

  private func proceed(_ link: ServerLink, _ now: Instant) throws {
    guard listen(link, now) else { return }
    link.records?.proceed(now)
    link.flows?.proceed(now)
    guard link.subjects != nil else { return askForDeployment(link, now) }
    forgetLostRecords(link)
    checkRights(link, now)
    try claimPlace(link, now)
    guard link.isServing, end == nil else { return }
    if !hasStarted {
      hasStarted = true
      isReady()
    }
    wasReady = true
    beat(link, now)
    claimHomes(link)
    resumeFailed(now)
    for (machine, pair) in pairs { move(machine, pair, link, now) }
    carryChannels(link, now)
    moveChanges(now)
  }

  private func deadline(_ link: ServerLink, _ now: Instant) -> Instant {
    var deadlines = [link.connection.deadline, link.records?.deadline, link.flows?.deadline]
    deadlines += [link.rights?.deadline, link.echo.deadline]
    deadlines += [link.nextClaim, link.isServing ? link.nextBeat : nil, nextStatus]
    deadlines += unseen.values.map(\.until)
    // Flows move while the bridge serves.
    if link.isServing {
      deadlines += pairs.values.map(\.due) + [nextResumption, nextChannel]
    }
    // A connection that has something to do at once says so with a time in the past.
    return max(now, deadlines.compactMap { $0 }.min() ?? now + .seconds(1))
  }

  private func wait(until deadline: Instant) throws {
    guard let link else { return try news.wake.wait(until: deadline) }
    try link.connection.wait(until: deadline, news.wake)
  }

  /// Waits without a connection; returns whether the bridge ends.
  private func waits(_ pause: Duration) throws -> Bool {
    // Bridges of many machines do not all come back at the same moment.
    var generator = SystemGenerator()
    let end = Instant.now + pause * Double.random(in: 0.5...1.5, using: &generator)
    while Instant.now < end {
      try news.wake.wait(until: end)
      let news = news.take()
      if news.isOver { return true }
      take(news, .now)
    }
    writeStatus()
    return false
  }

  /// Takes a failed connection for what it means: the servers may come back, or never take this
  /// bridge.
  func note(failure: RelayFailure, _ patienceEnd: Instant?) throws(BridgeEnd) {
    note(trouble: "no connection to '\(settings.address)': \(failure.reason)")
    switch failure.kind {
    case .refused: throw BridgeEnd(.noRights, failure.reason)
    case .unsuitable, .address: throw BridgeEnd(.refused, failure.reason)
    default: break
    }
    if let patienceEnd, !hasStarted, patienceEnd < .now {
      throw BridgeEnd(.unavailable, trouble ?? failure.reason)
    }
  }

  func note(trouble text: String) {
    if trouble != text { log(.warning, text) }
    trouble = text
  }

  /// Leaves the container as the next bridge expects it.
  private func finish() {
    showNobody()
    traffic.desk?.stop()
    stopChannels()
    queues.stop()
    for waker in wakers.values { waker.stop() }
    watch.stop()
    writePosition()
    writeStatus(isOver: true)
  }
}

/// A connection to the servers, and the state that ends with the connection.
final class ServerLink {
  let connection: RelayConnection
  let jetStream: JetStream
  var subjects: Subjects?
  var isAskingForDeployment = false
  /// The bridge's words to itself; see `listen`.
  var echo = Echo()
  var records: StreamReader?
  var flows: StreamReader?
  /// Whether the record has this bridge's generation.
  var isServing = false
  var isClaiming = false
  /// When the bridge asks for the streams, or claims its own record, again.
  var retry: Instant?
  /// When the record may be stored again to read the servers' clock, and how long a bridge that
  /// does not serve yet waits for the clock.
  var (nextClockClaim, clockPatience) = (Instant.longAgo, Instant.longAgo)
  var nextBeat = Instant(nanoseconds: 0)
  /// Homes that are being claimed.
  var claims: Set<String> = []
  /// When homes of members and channels may be claimed after the servers have refused a claim.
  var nextHomeClaim = Instant.longAgo
  /// The subjects of the records since the reader's restart with the number.
  var given: (restarts: Int, subjects: Set<String>) = (0, [])
  /// The greatest position of a record that was read.
  ///
  /// A reader that begins again gives earlier records first, and the bridge still knows the later
  /// ones.
  var knownRecords: UInt64 = 0
  /// The reader's restart after which the lost records were forgotten.
  var comparedRestarts = 0
  /// The check of the machine's rights, at the first connection of the process.
  var rights: RightsCheck?

  init(_ connection: RelayConnection) {
    self.connection = connection
    jetStream = JetStream(connection)
  }

  /// The time of ``retry``; nil while the reader gives records: nothing is claimed before all of
  /// them are known, and a time in the past would let the bridge's thread spin until then.
  var nextClaim: Instant? { records?.isCaughtUp == false ? nil : retry }

  func stop() {
    records?.stop()
    flows?.stop()
    connection.close()
  }
}

extension Instant {
  /// Before everything that a bridge has seen.
  static let longAgo = Instant(nanoseconds: 0)
}
