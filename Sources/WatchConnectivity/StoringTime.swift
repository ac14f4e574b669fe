internal import Dispatch
internal import Foundation
internal import WormholeContainerStorage
internal import WormholeDropIns
internal import WormholeSyscalls

/// Withholds the outcomes of transfers until their sender had time to store its closures for the
/// outcomes, by the transfers that the calls have returned.
///
/// On devices a transfer takes so long that the time is always sufficient, and much code stores a
/// closure in a dictionary *after* the call, without a lock. Here the outcome may be known before
/// the call returns. A loop that makes transfers and stores closures must not meet the outcome of
/// its first transfer while it still writes to the dictionary. Therefore the outcome is reported
/// only
/// - for a call on the main queue, once the main queue has come to its next turn,
/// - for a call elsewhere, once the thread has made no transfer for a while,
/// - and five seconds after the call has returned in any case.
final class StoringTime: Sendable {
  static let shared = StoringTime()

  /// The time without a transfer after which a thread is done with storing.
  fileprivate static let pause = Duration.milliseconds(100)
  /// The longest time for which an outcome is withheld after its call has returned.
  private static let limit = Duration.seconds(5)

  private struct State {
    /// The bursts of the threads that have made transfers lately.
    var bursts: [UInt: Burst] = [:]
    /// The burst of the main queue's current turn.
    var turn: Burst?
  }

  private let state = Monitor(State())

  /// Whether the current queue or thread is the main one.
  private static var isMain: Bool {
    Foundation.Thread.isMainThread || Isolation.isMainQueueCurrent
  }

  /// Makes a transfer in the burst of the current turn or thread.
  func storing(_ transfer: TransferCore, _ body: () -> Void) {
    let burst = Self.isMain ? turn() : burst(of: WormholeSyscalls.Thread.currentNumber)
    transfer.began(in: burst)
    burst.callBegins()
    body()
    burst.callReturns()
    transfer.returned()
  }

  private func turn() -> Burst {
    let (turn, isNew) = state.withLock { state in
      if let turn = state.turn { return (turn, false) }
      let turn = Burst(isTurn: true)
      state.turn = turn
      return (turn, true)
    }
    guard isNew else { return turn }
    DispatchQueue.main.async {
      self.state.withLock { $0.turn = nil }
      turn.end()
    }
    return turn
  }

  private func burst(of thread: UInt) -> Burst {
    state.withLock { state in
      if let burst = state.bursts[thread], !burst.isOver { return burst }
      // Threads come and go: the dictionary keeps only those that are in a burst.
      state.bursts = state.bursts.filter { !$0.value.isOver }
      let burst = Burst(isTurn: false)
      state.bursts[thread] = burst
      return burst
    }
  }

  /// Waits until the outcome of a transfer may be reported.
  func wait(for transfer: TransferCore) {
    if Mutants.has(.tellAtOnce) { return }
    guard let (burst, returned) = transfer.waitForReturn() else { return }
    burst.waitUntilOver(until: returned + Self.limit)
  }
}

/// The transfers that are made in one turn of the main queue, or by one thread without a pause.
final class Burst: Sendable {
  private struct State {
    var isInCall = false
    var lastReturn = Instant.now
    /// Whether the main queue has come to its next turn.
    var hasEnded = false
  }

  private let isTurn: Bool
  private let state = Monitor(State())

  init(isTurn: Bool) { self.isTurn = isTurn }

  func callBegins() { state.withLock { $0.isInCall = true } }

  func callReturns() { state.signal { ($0.isInCall, $0.lastReturn) = (false, .now) } }

  func end() { state.signal { $0.hasEnded = true } }

  /// The moment when the burst is over, if no transfer follows; nil if that is not known yet.
  private func end(_ state: State) -> Instant? {
    if isTurn { return state.hasEnded ? state.lastReturn : nil }
    return state.isInCall ? nil : state.lastReturn + StoringTime.pause
  }

  var isOver: Bool { state.withLock { end($0).map { $0 <= .now } ?? false } }

  func waitUntilOver(until limit: Instant) {
    while let end = state.wait(until: limit, { self.end($0) }) {
      let next = min(end, limit)
      guard next > .now else { return }
      // The next call of the burst postpones its end.
      _ = state.wait(until: next) { self.end($0) == end ? nil : true }
    }
  }
}
