internal import Dispatch
internal import Foundation
internal import Syscalls

/// Gives those who send the time to store, by the transfer that a call has returned, what is to be
/// done at its end, before its end is told.
///
/// On devices a transfer takes so long that this goes without saying, and much code stores a
/// closure in a dictionary *after* the call. Here the end may be known before the call returns. So
/// it is told only
/// - once the same thread has begun the next transfer, or
/// - for a call on the main queue, once that has come to its next turn, or
/// - a while after the call has returned.
final class StoringTime: Sendable {
  static let shared = StoringTime()

  /// How long an end is kept back at most, after a call on the main queue and after another.
  private static let patience = (
    main: Duration.milliseconds(100), other: Duration.milliseconds(200)
  )

  private struct State {
    var latest: [UInt: TransferCore] = [:]
    /// Made on the main queue since its last turn.
    var turn: [TransferCore] = []
    var isTurnComing = false
  }

  private let state = Monitor(State())
  private static let mainKey = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  /// Whether this is the main queue or thread.
  static var isMain: Bool {
    Foundation.Thread.isMainThread || DispatchQueue.getSpecific(key: mainKey) == true
  }

  /// A transfer was made, and its call goes on.
  func began(_ transfer: TransferCore, onMain isMain: Bool) {
    let thread = Syscalls.Thread.currentNumber
    let (before, needsTurn) = state.withLock { state -> (TransferCore?, Bool) in
      let before = state.latest.updateValue(transfer, forKey: thread)
      guard isMain else { return (before, false) }
      // A program whose main queue does not run would heap them up.
      if state.turn.count < 1024 { state.turn.append(transfer) }
      defer { state.isTurnComing = true }
      return (before, !state.isTurnComing)
    }
    before?.isStored()
    if needsTurn { DispatchQueue.main.async { self.turn() } }
  }

  /// The call that has made a transfer is about to return.
  func returning(_ transfer: TransferCore, onMain isMain: Bool) {
    transfer.returned(isMain ? Self.patience.main : Self.patience.other)
  }

  private func turn() {
    let all = state.withLock { state in
      defer { state.turn = [] }
      state.isTurnComing = false
      return state.turn
    }
    for transfer in all { transfer.isStored() }
  }

  /// Waits until the end of a transfer may be told.
  func wait(for transfer: TransferCore) {
    transfer.waitUntilStored()
    state.withLock { state in
      // As many entries as there are threads that have just sent.
      guard let found = state.latest.first(where: { $0.value === transfer }) else { return }
      state.latest[found.key] = nil
    }
  }
}
