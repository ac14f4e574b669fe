internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Settles messages that were not received in time, whether or not a receiver ever runs.
///
/// The sender settles its messages after their deadline; a process that lists the queue, or finds
/// it full, settles expired messages too.
///
/// Like a cancellation, an expiry is one rename out of the inbox: against a concurrent claim,
/// exactly one of the two wins. The deadline is wall-clock time, as stored in the message's file.
enum Expiry {
  /// Settles a message after its deadline; returns false if the message was claimed or settled, or
  /// if its receiver is on another machine, which decides.
  static func end(
    _ sent: SentName, at home: MemberDirectory, _ senders: SenderHomes,
    _ container: SharedContainer
  ) throws(WormholeError) -> Bool {
    let id = sent.name.id
    if try naming("settle message", id, home.elsewhere != nil) { return false }
    let sender = try naming("settle message", id, senders.home(of: sent.name))
    return try MessageCancellation.end(sent, at: home, .expired, sender, container)
  }

  /// Whether a message that was not settled may come back to the queue, or has come back.
  ///
  /// A receiver that has claimed the message for the first time may put it back as if never
  /// claimed, also between the attempt to settle the message and this call.
  static func mayComeBack(
    _ sent: SentName, to home: MemberDirectory
  ) throws(WormholeError) -> Bool {
    try naming("settle message", sent.name.id, at: home) { () throws(Errno) -> Bool in
      guard try home.elsewhere == nil else { return false }
      switch try home.location(of: sent) {
      case .inHand(let claimed, _)?: return !claimed.isRepeated
      case .waiting(let file)?: return !file.name.isRetried
      case .delayed?: return true
      case nil: return false
      }
    }
  }

  /// How many files, and how many bytes, one sweep of an inbox reads: a message's deadline is known
  /// only from its content.
  private static let most = (files: 1024, bytes: 64 << 20)

  /// Settles expired messages of an inbox, and those that a queue's workers claimed in vain.
  ///
  /// A long queue is checked in part: the oldest messages, and others by chance, in each sweep
  /// anew.
  ///
  /// - Returns: how many files were settled.
  static func sweep(_ home: MemberDirectory, _ container: SharedContainer) -> Int {
    do throws(Errno) {
      guard try home.elsewhere == nil else { return 0 }
      var files = try home.names(in: .inbox) { MessageName($0).map { WaitingFile($0) } }
      files += try home.unclaimed { _ in true }
      files.sort { $0.name.stamp < $1.name.stamp }
      return sweep(chosen(of: files, container), of: home, container)
    } catch {
      home.log(.notice, "cannot list expired messages of", error)
      return 0
    }
  }

  private static func chosen(of files: [WaitingFile], _ container: SharedContainer) -> [WaitingFile]
  {
    guard files.count > most.files else { return files }
    let rest = files.count - most.files
    let start = most.files / 2 + Int(container.options.environment.random() % UInt64(rest + 1))
    return Array(files[..<(most.files / 2)] + files[start..<(start + most.files / 2)])
  }

  private static func sweep(
    _ files: [WaitingFile], of home: MemberDirectory, _ container: SharedContainer
  ) -> Int {
    let now = Date(sinceEpoch: container.options.environment.sinceEpoch())
    let (glance, senders) = (
      QueuedMessageReader(home, container.options.limits), SenderHomes(container.storage)
    )
    var (count, bytes) = (0, 0)
    for file in files {
      let name = file.name
      // A file that is too large does not keep the sweep from the next files.
      let size = (try? home.status(of: file.text, in: file.part))?.size ?? 0
      guard size <= most.bytes - bytes else { continue }
      bytes += size
      // An unreadable file is left to its receiver.
      guard let header = try? glance.header(file.text, file.part), header.hasExpired(name, by: now)
      else { continue }
      do throws(WormholeError) {
        if try end(SentName(name), at: home, senders, container) { count += 1 }
      } catch {
        container.log(.notice, error, about: LogSubject(member: home.name, message: name.id))
      }
    }
    return count
  }
}

extension MessageFile.Header {
  /// Returns the deadline after which the message is no longer handled; nil for none.
  ///
  /// Receivers, senders and queue listings decide by this function alone. A message received in
  /// time never expires afterwards: neither at a later attempt, nor as a retried dead letter.
  ///
  /// - Parameter isRepeated: whether a receiver had the message before.
  func expiry(of name: MessageName, isRepeated: Bool = false) -> Date? {
    isRepeated || name.isRetried && !Mutants.has(.expireRetried) ? nil : expires
  }

  func hasExpired(_ name: MessageName, isRepeated: Bool = false, by now: Date) -> Bool {
    expiry(of: name, isRepeated: isRepeated).map { $0 < now } ?? false
  }
}

/// The sent messages that this sender settles if their deadline passes before their reception.
final class Expiries: Sendable {
  private struct Entry {
    let sent: SentName
    var name: MessageName { sent.name }
    let home: MemberDirectory
    /// When to settle the message, in nanoseconds since 1970.
    var due: Int64
    /// The pause before the latest retry, if the message could not be settled.
    var pause = Duration.zero
  }

  private struct State {
    var line = SortedQueue<Entry>()
    /// The messages in `line` that are not settled, as far as known.
    var open: Set<MessageName> = []
    var isClosed = false

    mutating func add(_ entry: Entry) { line.insert(entry) { $0.due < $1.due } }
  }

  /// How many messages are stored; further ones are settled by other processes.
  private static let limit = 1 << 16
  /// A change of the wall clock is noticed within this time, in nanoseconds.
  private static let longestPause: Int64 = 60_000_000_000

  private let container: SharedContainer
  private let senders: SenderHomes
  private let state = Monitor(State())
  private let worker: Worker

  init(_ container: SharedContainer) {
    self.container = container
    senders = SenderHomes(container.storage)
    worker = Worker(on: container.background, staysOnQueue: true, container.options.time)
    worker.begin { [weak self] in self?.endDue() }
  }

  /// Plans to settle a message at a moment, in nanoseconds since 1970.
  func add(_ sent: SentName, at home: MemberDirectory, due: Int64) {
    let isFirst = state.withLock { state in
      guard state.open.count < Self.limit, state.open.insert(sent.name).inserted else {
        return false
      }
      state.add(Entry(sent: sent, home: home, due: due))
      return state.line.first?.name == sent.name
    }
    if isFirst { arm() }
  }

  /// Removes a settled message.
  func forget(_ name: MessageName) {
    state.withLock { state in
      guard state.open.remove(name) != nil else { return }
      // Rare enough that the cost for each message is negligible.
      guard state.line.count > 2 * state.open.count + 1024 else { return }
      let open = state.open
      state.line.removeAll { !open.contains($0.name) }
    }
  }

  /// How many messages are stored.
  var count: Int { state.withLock { $0.open.count } }

  func close() {
    state.withLock { state in
      state.isClosed = true
      (state.line, state.open) = (SortedQueue(), [])
    }
    worker.end()
  }

  private var now: Int64 { container.options.environment.sinceEpoch() }

  private func arm() {
    let now = now
    let moment = state.withLock { state -> Int64? in
      while let first = state.line.first, !state.open.contains(first.name) {
        _ = state.line.removeFirst()
      }
      guard !state.isClosed, let first = state.line.first else { return nil }
      // A test's clock is set by the test alone.
      let limit = container.options.clock == nil ? now.addingClamped(Self.longestPause) : .max
      // A made-up message may contain a deadline of long ago.
      return min(max(first.due.addingClamped(1), now), limit)
    }
    guard let moment else { return }
    let pause = max(1_000_000, moment - now)
    worker.trigger(at: container.options.time.now + .nanoseconds(pause))
  }

  private func endDue() {
    let now = now
    let due = state.withLock { state in
      var due: [Entry] = []
      while let first = state.line.first, first.due < now {
        _ = state.line.removeFirst()
        if state.open.contains(first.name) { due.append(first) }
      }
      return due
    }
    for entry in due {
      do throws(WormholeError) {
        let isSettled = try Expiry.end(entry.sent, at: entry.home, senders, container)
        if !isSettled, try Expiry.mayComeBack(entry.sent, to: entry.home) {
          tryLater(entry)
        } else {
          state.withLock { _ = $0.open.remove(entry.name) }
        }
      } catch {
        if entry.pause == .zero {
          container.log(
            .notice, error, about: LogSubject(member: entry.home.name, message: entry.name.id))
        }
        tryLater(entry)
      }
    }
    arm()
  }

  /// Plans another try, because the system may refuse only temporarily, or because a receiver may
  /// put the message back.
  private func tryLater(_ entry: Entry) {
    var entry = entry
    entry.pause = min(max(entry.pause * 2, .seconds(1)), .seconds(60))
    entry.due = now.addingClamped(entry.pause.inNanoseconds)
    state.withLock { state in
      if !state.isClosed { state.add(entry) }
    }
  }
}
