internal import Dispatch
internal import Foundation
internal import Wormhole
internal import WormholeDropIns
internal import WormholeSyscalls

extension WCSession.Settings {
  /// The number of complication transfers per day on devices.
  static let complicationsOfDevices = 50
}

/// The complication, and the budget of its transfers.
extension WCSession {
  /// Whether the watch app's complication is on the active face.
  public var isComplicationEnabled: Bool {
    pairingState?.hasComplication ?? false
  }

  /// The number of complication transfers that are left today; zero while there is no complication.
  public var remainingComplicationUserInfoTransfers: Int {
    pairingState?.complicationTransfersLeft(day: Self.today, limit: settings.complicationBudget)
      ?? 0
  }

  static var today: Int { Int(Date().timeIntervalSince1970 / 86_400) }

  /// One of a day's complication transfers.
  ///
  /// It is taken before the transfer is sent, so that the budget is never exceeded, whatever other
  /// threads and processes send, and wherever this process dies.
  struct BudgetShare {
    fileprivate let pairing: Pairing
    /// The day of the budget, which may be the day after the clock of this process.
    fileprivate let day: Int

    func giveBack() {
      SilentCall.attempt { try pairing.returnComplicationTransfer(day: day) }
    }
  }

  /// Takes one of the day's complication transfers; nil if the transfer is an ordinary one.
  func takeOfBudget(_ kind: TransferKind, _ pairing: Pairing.State) -> BudgetShare? {
    guard kind == .complication, pairing.hasComplication,
      let opened = state.withLock({ $0.opened })
    else { return nil }
    let day = DropInLog.attempt {
      try opened.pairing.takeComplicationTransfer(
        day: Self.today, limit: settings.complicationBudget)
    }
    return day.flatMap(\.self).map { BudgetShare(pairing: opened.pairing, day: $0) }
  }

  /// Starts the watch's app for a complication transfer, if a start is registered.
  func wakeForComplication(_ connection: Connection) {
    guard connection.isStartable, !connection.isPeerThere else { return }
    DispatchQueue.global().async {
      DropInLog.attempt { try connection.peer.wake() }
    }
  }
}

extension Pairing.State {
  var hasComplication: Bool {
    guard let watch = activeWatch else { return false }
    return watch.isAppInstalled && watch.isComplicationEnabled
  }
}
