#if FAULT_POINTS
  import Wormhole
  import WormholeBridge
  import WormholeContainerStorage
  import WormholeSyscalls

  /// The bridge of a machine, with files in place of servers.
  ///
  /// Lock, watches, proxies and flows are those of `Bridge`, which opens them in the same order.
  /// Only its loop is told again here, without a connection: it takes news, receives, confirms,
  /// binds, publishes and removes records. This process alone reads and writes the files of the
  /// bridge.
  // The main thread makes the bridge, and waits while the thread of the bridge uses the bridge.
  final class ScheduledBridge: @unchecked Sendable {
    struct Machine {
      let name: String
      let folder: String
      static let here = Machine(name: "000000000000000a", folder: "here")
      static let there = Machine(name: "000000000000000b", folder: "there")
      var other: Machine { name == Self.here.name ? .there : .here }
    }

    private struct News {
      var residents: Set<Carrier.Resident> = []
      var hasServers = true
      var isEmpty: Bool { residents.isEmpty && !hasServers }
    }

    /// As in `Bridge`: how long the removal of records may wait for more of them.
    private static let finishTime = Duration.milliseconds(500)
    /// As in `Bridge`: the time until failed flows are read again from their files.
    private static let failureTime = Duration.seconds(1)
    /// The first bundle of the race is lost, after the servers have acknowledged it.
    private static let lostBundle = (to: Machine.there.name, number: 2)

    let container: SharedContainer
    private let machine: Machine
    private let servers: ServerFiles
    private let lock: BridgeLock
    private let carrier: Carrier
    private let residents: Residents
    private var out: OutFlow
    private var incoming: InFlow
    private let news = Monitor(News())
    private let watch: CarrierWatch?
    private var watches: [DirectoryWatch] = []
    private var isDirty = true
    private var changed: Set<Carrier.Resident> = []
    private var lastProgress = Instant.now
    /// The last bundles that were published and read.
    private var (published, read) = (0, 0)

    /// - Parameter watches: whether the bridge carries by itself, with ``carry(until:)``.
    init(
      _ machine: Machine, in path: String, _ options: Options, generation: Int, watches: Bool
    ) throws {
      self.machine = machine
      let other = machine.other.name
      container = try SharedContainer(directory: "\(path)/\(machine.folder)", options: options)
      guard let lock = try BridgeLock.take(container, try BridgeNews()) else { throw Errno.busy }
      self.lock = lock
      servers = try ServerFiles(
        "\(path)/servers", [machine.name, other], generation: generation)
      carrier = try Carrier(container)
      let news = news
      watch =
        watches
        ? CarrierWatch(carrier) { found in news.signal { $0.residents.formUnion(found) } } : nil
      residents = try Residents(container, carrier, watch)
      (out, incoming) = try Self.flows(other, residents)
      try findLast()
      guard watches else { return }
      for folder in [servers.bundles(to: machine.name), servers.statements(of: other)] {
        self.watches.append(try Self.watch(folder, news))
      }
    }

    private static func flows(
      _ machine: String, _ residents: Residents
    ) throws -> (OutFlow, InFlow) {
      let out = try OutFlow(to: machine, residents)
      let incoming = try InFlow(from: machine, residents, out.refusals)
      incoming.isFree = { [weak out] in try out?.isFree($0) ?? true }
      return (out, incoming)
    }

    private static func watch(_ folder: String, _ news: Monitor<News>) throws -> DirectoryWatch {
      let directory = try Descriptor.open(path: folder, [.readOnly, .directory])
      return try Watcher.shared.watch(directory, .movedTo) { _ in
        news.signal { $0.hasServers = true }
      }
    }

    /// Stands in for a member of the other machine.
    func standIn(for member: String) throws {
      _ = try residents.proxy(of: .member(member), on: machine.other.name)
    }

    func stop() {
      for watch in watches { watch.stop() }
      watch?.stop()
    }

    /// As `Bridge` asks the servers for the last bundle of its flow.
    private func findLast() throws {
      let numbers = try servers.numbers(to: machine.other.name)
      published = numbers.last ?? 0
      for number in numbers.reversed() {
        guard let bundle = try servers.bundle(number, to: machine.other.name) else { continue }
        if bundle.flow == out.flow { out.note(published: bundle.last) }
        return
      }
    }

    // MARK: The loop

    func carry(until end: Instant) {
      var hasFailed = false
      while Instant.now < end {
        let found = news.withLock { news in
          defer { news = News(hasServers: false) }
          return news
        }
        do {
          if hasFailed { try reopen() }
          // A call that read the files of the servers may have failed, too.
          try proceed(hasFailed ? News(residents: found.residents) : found)
          hasFailed = false
        } catch {
          // A violation, unless the schedule lets a call fail.
          Turnstile.setText("\(error)")
          hasFailed = true
          let _: Void? = news.wait(until: min(end, .now + Self.failureTime)) { _ in nil }
          continue
        }
        let due = out.unfinished > 0 ? min(end, lastProgress + Self.finishTime) : end
        let _: Bool? = news.wait(until: due) { $0.isEmpty ? nil : true }
      }
    }

    /// Reads the flows again from their files, as after a kill.
    private func reopen() throws {
      try residents.reopen(machine.other.name)
      (out, incoming) = try Self.flows(machine.other.name, residents)
      isDirty = true
      try findLast()
      try state()
    }

    /// Moves both flows on once, whatever the news are; returns whether nothing is left to carry.
    func carryOnce() throws -> Bool {
      isDirty = true
      try proceed(News())
      try out.finish()
      return out.isConfirmed && out.isPublished
    }

    private func proceed(_ news: News) throws {
      changed.formUnion(news.residents)
      if news.hasServers {
        try receive()
        try confirm()
      }
      try move()
    }

    private func receive() throws {
      let numbers = try servers.numbers(to: machine.name).filter { $0 > read }
      guard let last = numbers.last else { return }
      let bundles = try numbers.compactMap { try servers.bundle($0, to: machine.name) }
      // After a failure the other machine publishes the bundles again.
      read = last
      for bundle in bundles { try incoming.begin(bundle.flow) }
      if !bundles.isEmpty { _ = try incoming.receive(bundles.map { ($0, 0) }) }
      try state()
    }

    private func state() throws {
      guard let position = incoming.position else { return }
      try servers.state(.init(position: position, bundle: read), of: machine.name)
    }

    private func confirm() throws {
      guard let statement = try servers.statement(of: machine.other.name) else { return }
      let before = out.confirmed
      try out.confirm(statement.position)
      if out.confirmed > before { lastProgress = .now }
      // The other machine has read all bundles, and the servers have lost the rest.
      if statement.position.flow == out.flow, statement.bundle >= published,
        out.published > statement.position.number
      {
        out.goBack(to: statement.position.number)
      }
    }

    private func move() throws {
      if isDirty || !changed.isEmpty {
        let other = machine.other.name
        let proxies = isDirty ? residents.all(on: other) : changed.compactMap { residents[$0] }
        changed = []
        isDirty = try !out.collect(from: proxies.sorted { $0.name < $1.name })
      }
      while let bundle = try out.bundle(
        generation: servers.generation, size: 400 << 10, largest: 900 << 10)
      {
        if bundle.first == out.confirmed + 1 { lastProgress = .now }
        published += 1
        let isLost = (machine.other.name, published) == Self.lostBundle
        try servers.publish(bundle, to: machine.other.name, as: published, isLost: isLost)
        out.note(published: bundle)
      }
      if out.unfinished > 0, Instant.now - lastProgress >= Self.finishTime { try out.finish() }
    }
  }
#endif
