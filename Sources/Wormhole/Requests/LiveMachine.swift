internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A pure state machine: the arrivals of one incarnation, their order, and the handlers that
/// receive them.
///
/// The machine knows no folder, clock or queue. ``LiveMailbox`` reads the files, and asks for the
/// next work on one thread at a time until there is none.
struct LiveMachine<Content: Sendable, Replier, MessageHandler> {
  /// A request or an immediate message that was read.
  struct Arrival: Sendable {
    let name: LiveName
    let content: Content
    let kind: String
    let size: Int

    fileprivate func isLike(_ other: Arrival) -> Bool {
      name.letter.isMessage == other.name.letter.isMessage && kind == other.kind
    }
  }

  enum Work {
    /// Read the file.
    case read(LiveName)
    /// Deliver the arrival to its ``Taker``.
    case deliver(Arrival)
  }

  enum Taker {
    case answering(Replier)
    /// Report the end of the delivery with ``delivered()``.
    case hearing([MessageHandler])
    /// The arrival is kept until a handler is registered, or until its time is over.
    case later
    case nobody
  }

  fileprivate struct Handler<Call> {
    let number: Int
    let kinds: Set<String>?
    let call: Call
  }

  var arrivals = LiveArrivals()
  /// The arrivals to read next, and those to deliver again; both backwards.
  private var unread: [LiveName] = []
  private var again: [Arrival] = []
  /// Arrivals to deliver, as a link has let them through.
  private var carried: [Arrival] = []
  private var lastNumber = 0
  /// By kind, or nil for all kinds without a handler of their own; the latest handler counts.
  private var answering: [String?: [Handler<Replier>]] = [:]
  private var hearing: [Handler<MessageHandler>] = []
  /// Arrivals for which no handler was registered yet.
  private var early: [Arrival] = []
  private var earlyBytes = 0
  /// Whether the early arrivals are to be delivered again.
  private var isEarlyDue = false
  /// The number of messages that are being delivered to handlers.
  private(set) var delivering = 0
  private(set) var isClosed = false

  /// The end of the time in which arrivals without a handler are kept, in case a handler is
  /// registered.
  ///
  /// Other processes see a new member before the member can have registered its handlers, above all
  /// the processes that have woken it.
  let youngUntil: Instant
  private let mostEarly: Int
  private let mostEarlyBytes: Int

  init(youngUntil: Instant, mostEarly: Int = 1000, mostEarlyBytes: Int) {
    self.youngUntil = youngUntil
    self.mostEarly = mostEarly
    self.mostEarlyBytes = mostEarlyBytes
  }

  /// The number of arrivals kept for handlers that may still be registered.
  var earlyCount: Int { early.count }

  // MARK: Order

  /// Returns what to do next; nil if there is nothing to do until the next event.
  ///
  /// Early arrivals are delivered before later ones.
  mutating func next(now: Instant) -> Work? {
    guard !isClosed else { return nil }
    let isBetween = unread.isEmpty || !Mutants.has(.overtakeEarly)
    if isBetween, !early.isEmpty, isEarlyDue || now >= youngUntil {
      // The arrivals that are still to be delivered again are later than these.
      again += early.reversed()
      (early, earlyBytes, isEarlyDue) = ([], 0, false)
    }
    if let arrival = again.popLast() { return .deliver(arrival) }
    if !carried.isEmpty { return .deliver(carried.removeFirst()) }
    if unread.isEmpty {
      unread = arrivals.takeOthers()
      unread.reverse()
    }
    return unread.popLast().map(Work.read)
  }

  /// A link has let an arrival through.
  mutating func carry(_ arrival: Arrival) { carried.append(arrival) }

  /// Returns who receives the arrival.
  mutating func taker(of arrival: Arrival, now: Instant) -> Taker {
    // Earlier arrivals of this kind may still wait, if their handler was registered just now.
    let isBehind = early.contains(where: arrival.isLike) && !Mutants.has(.passEarly)
    if !isBehind, arrival.name.letter.isMessage {
      let calls = hearing.filter { $0.kinds?.contains(arrival.kind) ?? true }.map(\.call)
      if !calls.isEmpty {
        delivering += 1
        return .hearing(calls)
      }
    } else if !isBehind, let last = answering[arrival.kind]?.last ?? answering[nil]?.last {
      return .answering(last.call)
    }
    guard isBehind || now < youngUntil, early.count < mostEarly,
      early.isEmpty || earlyBytes + arrival.size <= mostEarlyBytes
    else { return .nobody }
    early.append(arrival)
    earlyBytes += arrival.size
    return .later
  }

  mutating func delivered() { delivering -= 1 }

  /// Ends the exchange: no work is left, and none comes.
  mutating func close() { isClosed = true }

  // MARK: Handlers

  mutating func add(answering kind: String?, _ call: Replier) -> Int {
    lastNumber += 1
    answering[kind, default: []].append(Handler(number: lastNumber, kinds: nil, call: call))
    return lastNumber
  }

  mutating func add(hearing kinds: Set<String>?, _ call: MessageHandler) -> Int {
    lastNumber += 1
    hearing.append(Handler(number: lastNumber, kinds: kinds, call: call))
    return lastNumber
  }

  /// Has the early arrivals delivered again, as a handler was added; returns whether there are any.
  mutating func deliverEarly() -> Bool {
    isEarlyDue = !early.isEmpty
    return isEarlyDue
  }

  /// Removes a handler.
  ///
  /// - Returns: the previous handlers, to be released after the lock: their objects may remove
  ///   another handler when they are released.
  mutating func remove(_ number: Int) -> Any {
    defer {
      hearing.removeAll { $0.number == number }
      for (kind, all) in answering where all.contains(where: { $0.number == number }) {
        let left = all.filter { $0.number != number }
        answering[kind] = left.isEmpty ? nil : left
      }
    }
    return (hearing, answering)
  }
}

extension LiveMachine.Handler: Equatable where Call: Equatable {}
extension LiveMachine.Handler: Hashable where Call: Hashable {}
extension LiveMachine.Arrival: Equatable where Content: Equatable {}
extension LiveMachine.Arrival: Hashable where Content: Hashable {}
extension LiveMachine: Equatable
where Content: Equatable, Replier: Equatable, MessageHandler: Equatable {}
extension LiveMachine: Hashable
where Content: Hashable, Replier: Hashable, MessageHandler: Hashable {}
