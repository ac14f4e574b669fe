public import Wormhole
internal import WormholeSyscalls

/// A disturbed connection between members: it drops, delays, duplicates and reorders by plan, and
/// can be cut.
///
/// The messages are real files in their usual directories; the link decides when the receivers see
/// them. The link stands between the members of all instances whose options use it, such as both
/// members of ``TwoMembers``. It also reaches the processes that a ``TestProcess`` has started with
/// the link, if they call `Options.useLinkOfTest()`.
public final class Link: Sendable {
  /// The messages that are counted together.
  struct Stream: Hashable, Sendable {
    let from: String
    let to: String
    let kind: LinkLetter.Kind
    let isUrgent: Bool

    init(_ letter: LinkLetter) {
      from = letter.from
      to = letter.to
      kind = letter.kind
      isUrgent = letter.isUrgent
    }
  }

  private struct Place: Hashable {
    let inbox: String
    let name: String
  }

  private struct State {
    var isCut = false
    var isCutOff: Set<String> = []
    var watchers: [Int: @Sendable () -> Void] = [:]
    var watcherCount = 0
    var counts: [Stream: Int] = [:]
    /// The arrival times, past or future, of the messages in the inboxes, by inbox and name.
    var arrivals: [String: [String: Instant]] = [:]
    /// The time of the next rescan of an inbox.
    var alarms: [String: Instant] = [:]
    /// Duplicated letters, with the indices of those of their messages that were already
    /// duplicated.
    var doubled: [Place: Set<Int>] = [:]
    var log: [String] = []
  }

  /// The plan of the faults.
  public let plan: LinkPlan
  private let time: MailTime
  private let queue = WorkQueue()
  private let state = Monitor(State())
  /// The connection between processes: in the test, the channel of its cuts; elsewhere, the watch
  /// on it.
  let sharing = Monitor<SharedState?>(nil)

  /// Creates a link that disturbs by a plan, and is not cut.
  ///
  /// - Parameters:
  ///   - plan: the faults and their messages; by default no faults.
  ///   - clock: the clock of the delays; nil for the host's clock.
  public init(_ plan: LinkPlan = LinkPlan(), clock: TestClock? = nil) {
    self.plan = plan
    time = MailTime(moved: clock)
  }

  /// The faults so far, with a line for each disturbed message: for a test to print or to compare.
  public var log: [String] { state.withLock { $0.log } }

  // MARK: Cutting

  /// Whether any member is cut off.
  public var isCut: Bool { state.withLock { $0.isCut || !$0.isCutOff.isEmpty } }

  /// Cuts the link: no member can reach another.
  ///
  /// Each member sees the others as not running. Requests fail at once, also those in progress, and
  /// immediate messages throw. Guaranteed messages can be sent, and wait until the link is healed.
  public func cut() { change { $0.isCut = true } }

  /// Cuts a member off from all other members.
  public func cut(off name: String) { change { $0.isCutOff.insert(name) } }

  /// Heals all cuts; the waiting messages arrive.
  public func heal() {
    change { state in
      state.isCut = false
      state.isCutOff = []
    }
  }

  private func change(_ body: (inout State) -> Void) {
    let watchers = state.withLock { state in
      body(&state)
      return state.watchers.sorted { $0.key < $1.key }.map(\.value)
    }
    for watcher in watchers { watcher() }
    tellOthers()
  }

  /// The current cuts, for other processes.
  var cuts: Cuts { state.withLock { Cuts(isCut: $0.isCut, isCutOff: $0.isCutOff.sorted()) } }

  func follow(_ cuts: Cuts) {
    change { state in
      state.isCut = cuts.isCut
      state.isCutOff = Set(cuts.isCutOff)
    }
  }

  private static func isCut(_ one: String, _ other: String, _ state: State) -> Bool {
    one != other
      && (state.isCut || state.isCutOff.contains(one) || state.isCutOff.contains(other))
  }

  // MARK: Faults

  private func fault(_ letter: LinkLetter, _ state: inout State) -> LinkPlan.Fault? {
    // A message to the sender itself uses no link.
    guard letter.from != letter.to else { return nil }
    let stream = Stream(letter)
    let number = state.counts[stream, default: 0] + 1
    state.counts[stream] = number
    guard let fault = plan.fault(stream, number),
      fault != .duplicate || letter.kind == .guaranteed
    else { return nil }
    let from = letter.from.isEmpty ? "somebody" : letter.from
    state.log.append("\(letter.kind) \(number) of \(from) to \(letter.to): \(fault)")
    return fault
  }

  /// Returns the delay that a fault causes.
  private func pause(_ fault: LinkPlan.Fault?) -> Duration {
    switch fault {
    case .drop: plan.rediscovery
    case .delay(let duration): duration
    case .reorder: plan.window
    case .duplicate, nil: .zero
    }
  }

  /// Returns the arrival time of a letter in an inbox, past or future.
  private func arrival(of letter: LinkLetter, _ state: inout State) -> Instant {
    let fault = fault(letter, &state)
    if fault == .duplicate { state.doubled[Place(inbox: letter.to, name: letter.name)] = [] }
    return time.now + pause(fault)
  }

  /// Sets an alarm for a rescan of an inbox when the next letters arrive.
  private func setAlarm(
    _ inbox: String, at moment: Instant, _ again: @escaping @Sendable () -> Void
  ) {
    time.ring(at: moment, on: queue) { [weak self] in
      self?.state.withLock { state in
        if state.alarms[inbox] == moment { state.alarms[inbox] = nil }
      }
      again()
    }
  }
}

extension Link: MessageLink {
  package func isCut(between one: String, and other: String) -> Bool {
    state.withLock { Self.isCut(one, other, $0) }
  }

  package func watch(_ changed: @escaping @Sendable () -> Void) -> any AnyObject & Sendable {
    let number = state.withLock { state in
      state.watcherCount += 1
      state.watchers[state.watcherCount] = changed
      return state.watcherCount
    }
    return WatchToken { [weak self] in self?.state.withLock { $0.watchers[number] = nil } }
  }

  private final class WatchToken: Sendable {
    private let end: @Sendable () -> Void
    init(_ end: @escaping @Sendable () -> Void) { self.end = end }
    deinit { end() }
  }

  package func haveArrived(
    _ letters: [LinkLetter], again: @escaping @Sendable () -> Void
  ) -> [Bool] {
    guard let inbox = letters.first?.to else { return [] }
    let now = time.now
    let (answers, next) = state.withLock { state -> ([Bool], Instant?) in
      let known = state.arrivals[inbox] ?? [:]
      var arrivals: [String: Instant] = [:]
      // A letter behind an undelivered letter of the same stream must not overtake it.
      var held: Set<Stream> = []
      var next: Instant?
      let answers = letters.map { letter in
        let arrives = known[letter.name] ?? arrival(of: letter, &state)
        arrivals[letter.name] = arrives
        if arrives > now { next = min(next ?? arrives, arrives) }
        if arrives <= now, !held.contains(Stream(letter)),
          !Self.isCut(letter.from, inbox, state)
        {
          return true
        }
        held.insert(Stream(letter))
        return false
      }
      state.arrivals[inbox] = arrivals
      guard let moment = next, moment < state.alarms[inbox] ?? .distantFuture else {
        return (answers, nil)
      }
      state.alarms[inbox] = moment
      return (answers, moment)
    }
    if let next { setAlarm(inbox, at: next, again) }
    return answers
  }

  package func losesAcknowledgement(of letter: LinkLetter, place: Int) -> Bool {
    state.withLock { state in
      let key = Place(inbox: letter.to, name: letter.name)
      return state.doubled[key]?.insert(place).inserted ?? false
    }
  }

  package func carry(_ letter: LinkLetter, _ arrive: @escaping @Sendable () -> Void) {
    let suffered = state.withLock { state -> LinkPlan.Fault? in
      Self.isCut(letter.from, letter.to, state) ? .drop : fault(letter, &state)
    }
    switch suffered {
    case .drop: return
    case .duplicate, nil: arrive()
    case .delay, .reorder:
      time.ring(at: time.now + pause(suffered), on: queue) { [weak self] in
        guard let self, !isCut(between: letter.from, and: letter.to) else { return }
        arrive()
      }
    }
  }
}

extension Options {
  /// Puts a link between the members of this instance and all others.
  public mutating func use(_ link: Link) { self.link = link }
}
