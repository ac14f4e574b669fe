internal import Dispatch
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The requests or messages that wait for their turn on a handler's queue.
///
/// Their number is bounded, and each is delivered before its deadline or not at all.
final class LiveCalls<Item: Sendable>: Sendable {
  private struct WaitingRequest {
    let item: Item
    let arrival: LiveMessage
  }

  private struct State {
    var waiting: [WaitingRequest] = []
    var bytes = 0
    /// The number of calls added to the queue that have not run: one for each waiting item, or
    /// more.
    var turns = 0
  }

  /// The largest number of waiting items.
  static var most: Int { 1000 }

  private let state = Monitor(State())
  private let queue: DispatchQueue
  private let mostBytes: Int
  private let call: @Sendable (Item) -> Void

  /// - Parameter mostBytes: the limit for all waiting items; a single item may be larger.
  init(
    on queue: DispatchQueue, mostBytes: Int, _ call: @escaping @Sendable (Item) -> Void
  ) {
    self.queue = queue
    self.mostBytes = mostBytes
    self.call = call
  }

  /// Adds an item, to be delivered at its turn; returns false if too many items wait.
  func add(_ item: Item, _ arrival: LiveMessage) -> Bool {
    var late: [LiveMessage] = []
    let (isTaken, needsTurn) = state.withLock { state in
      // Items past their deadline occupy space that new items could have.
      if !hasRoom(state, arrival) { late = Self.dropLate(&state) }
      guard hasRoom(state, arrival) else { return (false, false) }
      state.waiting.append(WaitingRequest(item: item, arrival: arrival))
      state.bytes += arrival.size
      guard state.turns < state.waiting.count else { return (true, false) }
      state.turns += 1
      return (true, true)
    }
    if needsTurn { queue.soon { self.takeTurn() } }
    // Outside the lock: the program's log closure may take long.
    for one in late { one.tellLate() }
    return isTaken
  }

  /// Removes the items past their deadline, and returns their messages.
  private static func dropLate(_ state: inout State) -> [LiveMessage] {
    var (left, late): ([WaitingRequest], [LiveMessage]) = ([], [])
    for one in state.waiting {
      if one.arrival.isLate { late.append(one.arrival) } else { left.append(one) }
    }
    state.waiting = left
    state.bytes = left.reduce(0) { $0 + $1.arrival.size }
    return late
  }

  private func hasRoom(_ state: State, _ arrival: LiveMessage) -> Bool {
    guard !state.waiting.isEmpty else { return true }
    return state.waiting.count < Self.most && state.bytes + arrival.size <= mostBytes
  }

  private func takeTurn() {
    var late: [LiveMessage] = []
    let next = state.withLock { state -> Item? in
      state.turns -= 1
      while !state.waiting.isEmpty {
        let next = state.waiting.removeFirst()
        state.bytes -= next.arrival.size
        if !next.arrival.isLate { return next.item }
        late.append(next.arrival)
      }
      return nil
    }
    for one in late { one.tellLate() }
    if let next { call(next) }
  }
}

/// Counts the requests and messages of asynchronous closures, with the same bounds as for a queue.
final class LiveHands: Sendable {
  private let state = Monitor((count: 0, bytes: 0))
  private let mostBytes: Int

  init(mostBytes: Int) { self.mostBytes = mostBytes }

  func take(_ arrival: LiveMessage) -> Bool {
    state.withLock { state in
      guard
        state.count == 0
          || state.count < LiveCalls<Void>.most && state.bytes + arrival.size <= mostBytes
      else { return false }
      state.count += 1
      state.bytes += arrival.size
      return true
    }
  }

  func release(_ arrival: LiveMessage) {
    state.withLock { state in
      state.count -= 1
      state.bytes -= arrival.size
    }
  }
}
