internal import Dispatch
internal import FoundationEssentials
internal import SharedContainer
internal import Syscalls

/// Messages that are not received in time end by themselves, whether or not anybody ever receives:
/// by the sender, once their time has passed, and by whoever looks at the queue, or finds it full.
///
/// It is done as a message is taken back: by one rename out of the inbox, so that of whoever claims
/// it at that moment and this one wins. The time is the wall clock's, as it stands in the file.
enum Expiry {
  /// Ends a message whose time has passed; false if somebody has claimed or ended it.
  static func end(
    _ name: MessageName, at home: MemberDirectory, _ senders: SenderHomes, _ hole: Wormhole
  ) throws(WormholeError) -> Bool {
    let sender: MemberDirectory?
    do throws(Errno) {
      sender = try senders.home(of: name)
    } catch {
      throw WormholeError(error, "end message", name.id)
    }
    return try Cancelling.end(name, at: home, .expired, sender, hole)
  }

  /// How many files one look through an inbox reads, and how many bytes: when each message has
  /// expired is known to those who read it alone.
  private static let most = (files: 1024, bytes: 64 << 20)

  /// Ends what has expired in an inbox: of many, among the oldest and, from look to look, among
  /// others by chance.
  ///
  /// - Returns: how many files that were.
  static func sweep(_ home: MemberDirectory, _ hole: Wormhole) -> Int {
    do throws(Errno) {
      var names: [MessageName] = []
      try home.list(.inbox) { if let name = MessageName($0) { names.append(name) } }
      names.sort { $0.stamp < $1.stamp }
      return sweep(chosen(of: names, hole), of: home, hole)
    } catch {
      hole.log(
        .notice, "cannot look for what has expired of '\(home.name)': \(error)",
        about: LogSubject(member: home.name), because: error)
      return 0
    }
  }

  private static func chosen(of names: [MessageName], _ hole: Wormhole) -> [MessageName] {
    guard names.count > most.files else { return names }
    let rest = names.count - most.files
    let start = most.files / 2 + Int(hole.options.environment.random() % UInt64(rest + 1))
    return Array(names[..<(most.files / 2)] + names[start..<(start + most.files / 2)])
  }

  private static func sweep(
    _ names: [MessageName], of home: MemberDirectory, _ hole: Wormhole
  ) -> Int {
    let now = Date(sinceEpoch: hole.options.environment.sinceEpoch())
    let (glance, senders) = (
      QueuedMessageReader(home, hole.options.limits), SenderHomes(hole.container)
    )
    var (count, bytes) = (0, 0)
    for name in names {
      // Those that are too large do not keep it from others.
      let size = (try? home.status(of: name.text, in: .inbox))?.size ?? 0
      guard size <= most.bytes - bytes else { continue }
      bytes += size
      // What cannot be read is the receiver's to find out.
      guard let header = try? glance.header(name.text, .inbox), header.hasExpired(by: now) else {
        continue
      }
      do throws(WormholeError) {
        if try end(name, at: home, senders, hole) { count += 1 }
      } catch {
        hole.log(.notice, error, about: LogSubject(member: home.name, message: name.id))
      }
    }
    return count
  }
}

extension MessageFile.Header {
  func hasExpired(by now: Date) -> Bool { expires.map { $0 < now } ?? false }
}

/// What a sender has sent and will end, should its time pass before it is received.
final class Expiries: Sendable {
  private struct Entry {
    let name: MessageName
    let home: MemberDirectory
    /// In nanoseconds since 1970.
    var due: Int64
    /// After which it was tried again that could not be ended.
    var pause = Duration.zero
  }

  private struct State {
    var line = Line<Entry>()
    /// Those in the line that have not ended, as far as is known.
    var open: Set<MessageName> = []
    /// When it is to look.
    var alarms = Alarms()
    var isClosed = false

    mutating func add(_ entry: Entry) { line.insert(entry) { $0.due < $1.due } }
  }

  /// How many are kept: what is beyond is ended by others.
  private static let limit = 1 << 16
  /// A clock that is set is noticed within this time, in nanoseconds.
  private static let longestPause: Int64 = 60_000_000_000

  private let hole: Wormhole
  private let senders: SenderHomes
  private let state = Monitor(State())

  init(_ hole: Wormhole) {
    self.hole = hole
    senders = SenderHomes(hole.container)
  }

  /// Has a message end at that moment, in nanoseconds since 1970.
  func add(_ name: MessageName, at home: MemberDirectory, due: Int64) {
    state.withLock { state in
      guard state.open.count < Self.limit, state.open.insert(name).inserted else { return }
      state.add(Entry(name: name, home: home, due: due))
    }
    arm()
  }

  /// A message has ended.
  func forget(_ name: MessageName) {
    state.withLock { state in
      guard state.open.remove(name) != nil else { return }
      // Rarely enough that it costs each one next to nothing.
      guard state.line.count > 2 * state.open.count + 1024 else { return }
      let open = state.open
      state.line.removeAll { !open.contains($0.name) }
    }
  }

  /// How many are kept.
  var count: Int { state.withLock { $0.open.count } }

  func close() {
    state.withLock { state in
      state.isClosed = true
      (state.line, state.open) = (Line(), [])
    }
  }

  private var now: Int64 { hole.options.environment.sinceEpoch() }

  private func arm() {
    let now = now
    let moment = state.withLock { state -> Int64? in
      while let first = state.line.first, !state.open.contains(first.name) {
        _ = state.line.removeFirst()
      }
      guard !state.isClosed, let first = state.line.first else { return nil }
      // A clock that a test holds is set by nobody else.
      let limit = hole.options.clock == nil ? now.addingClamped(Self.longestPause) : .max
      // Whoever has made a message up may say that it expired long ago.
      let moment = min(max(first.due.addingClamped(1), now), limit)
      return state.alarms.add(moment) ? moment : nil
    }
    guard let moment else { return }
    let pause = max(1_000_000, moment - now)
    let time = hole.options.time
    time.ring(at: time.now + .nanoseconds(pause), on: hole.finding) { [weak self] in
      self?.look(moment)
    }
  }

  private func look(_ moment: Int64) {
    let now = now
    let due = state.withLock { state in
      state.alarms.remove(moment)
      var due: [Entry] = []
      while let first = state.line.first, first.due < now {
        _ = state.line.removeFirst()
        if state.open.contains(first.name) { due.append(first) }
      }
      return due
    }
    for entry in due {
      do throws(WormholeError) {
        _ = try Expiry.end(entry.name, at: entry.home, senders, hole)
        state.withLock { _ = $0.open.remove(entry.name) }
      } catch {
        if entry.pause == .zero {
          hole.log(
            .notice, error, about: LogSubject(member: entry.home.name, message: entry.name.id))
        }
        tryLater(entry)
      }
    }
    arm()
  }

  /// What the system refuses now it may grant later.
  private func tryLater(_ entry: Entry) {
    var entry = entry
    entry.pause = min(max(entry.pause * 2, .seconds(1)), .seconds(60))
    entry.due = now.addingClamped(entry.pause.inNanoseconds)
    state.withLock { state in
      if !state.isClosed { state.add(entry) }
    }
  }
}
