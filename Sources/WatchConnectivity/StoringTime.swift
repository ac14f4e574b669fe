internal import Dispatch
internal import Foundation
internal import Syscalls

/// Withholds the outcome of a transfer until the sender had time to store its closure for the
/// outcome, by the transfer that the call has returned.
///
/// On devices a transfer takes so long that the time is always sufficient, and much code stores a
/// closure in a dictionary *after* the call. Here the outcome may be known before the call returns.
/// Therefore the outcome is reported only
/// - once the same thread has started its next transfer, or
/// - for a call on the main queue, once the main queue has come to its next turn, or
/// - a while after the call has returned.
final class StoringTime: Sendable {
  static let shared = StoringTime()

  /// The longest time for which an outcome is withheld, after a call on the main queue and after a
  /// call elsewhere.
  private static let patience = (
    main: Duration.milliseconds(100), other: Duration.milliseconds(200)
  )

  private struct State {
    var latest: [UInt: TransferCore] = [:]
    /// The transfers that were made on the main queue since its last turn.
    var turn: [TransferCore] = []
    var isTurnComing = false
  }

  private let state = Monitor(State())
  private static let mainKey = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  /// Whether the current queue or thread is the main one.
  static var isMain: Bool {
    Foundation.Thread.isMainThread || DispatchQueue.getSpecific(key: mainKey) == true
  }

  /// Records that a transfer was made, and its call still runs.
  func began(_ transfer: TransferCore, onMain isMain: Bool) {
    let thread = Syscalls.Thread.currentNumber
    let (before, needsTurn) = state.withLock { state -> (TransferCore?, Bool) in
      let before = state.latest.updateValue(transfer, forKey: thread)
      guard isMain else { return (before, false) }
      // The bound: if the program's main queue does not run, transfers would pile up.
      if state.turn.count < 1024 { state.turn.append(transfer) }
      defer { state.isTurnComing = true }
      return (before, !state.isTurnComing)
    }
    before?.isStored()
    if needsTurn { DispatchQueue.main.async { self.turn() } }
  }

  /// Records the imminent return of the call that made a transfer.
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

  /// Waits until the outcome of a transfer may be reported.
  func wait(for transfer: TransferCore) {
    transfer.waitUntilStored()
    state.withLock { state in
      // The dictionary has as many entries as there are threads that have just sent.
      guard let found = state.latest.first(where: { $0.value === transfer }) else { return }
      state.latest[found.key] = nil
    }
  }
}
