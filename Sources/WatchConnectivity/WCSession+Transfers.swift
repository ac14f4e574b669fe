internal import Dispatch
internal import DropIns
public import Foundation
internal import PropertyLists
internal import Syscalls
internal import Wormhole

/// What arrives whoever dies meanwhile.
extension WCSession {
  /// Transfers a dictionary, in order with all other transfers.
  ///
  /// When this returns it is in the counterpart's inbox, whether or not the counterpart runs. What
  /// is wrong with it the delegate is told, as the end of the transfer; never before whoever has
  /// called this could store what is to be done then: see the article *WatchConnectivity*.
  @discardableResult
  public func transferUserInfo(_ userInfo: [String: Any] = [:]) -> WCSessionUserInfoTransfer {
    transfer(userInfo, .userInfo)
  }

  /// Transfers a dictionary for the complication, before all that was not transferred so, and
  /// starts the watch's app if somebody has said how.
  ///
  /// An earlier one that has not arrived is an ordinary transfer from then on. Once the day's
  /// budget is used up, or while there is no complication, so is this one.
  @discardableResult
  public func transferCurrentComplicationUserInfo(
    _ userInfo: [String: Any] = [:]
  ) -> WCSessionUserInfoTransfer {
    transfer(userInfo, .complication)
  }

  /// Transfers a dictionary that may be as large as a value of the container; the other side's
  /// delegate is given it as a user info.
  package func transferBlob(_ content: [String: Any]) -> WCSessionUserInfoTransfer {
    transfer(content, .blob)
  }

  private func transfer(
    _ userInfo: [String: Any], _ kind: TransferKind
  ) -> WCSessionUserInfoTransfer {
    let found = Result { () throws(WCError) in try ready() }
    let core = TransferCore(newIdentifier())
    let transfer = WCSessionUserInfoTransfer(core, userInfo)
    begin(.userInfo(transfer), found.map { $0.0 }) { (connection, options) throws(WCError) in
      let limit = kind == .blob ? Int.max : settings.largestUserInfo
      let value = try Payload.take(userInfo, largest: limit)
      // What cannot be sent costs nothing.
      let isUrgent = try takesOfBudget(kind, found.get().1)
      var options = options
      options.kind =
        (kind == .complication && !isUrgent ? .plainComplication : kind).rawValue
      options.isUrgent = isUrgent
      if isUrgent { connection.transfers.makeCurrent(transfer) }
      do throws(WormholeError) {
        core.wasSent(try connection.peer.send(value, options))
      } catch {
        try tolerate(error)
      }
      if isUrgent { wakeForComplication(connection) }
    }
    return transfer
  }

  /// Whether it is one of the day's transfers for the complication.
  private func takesOfBudget(_ kind: TransferKind, _ pairing: Pairing.State) -> Bool {
    guard kind == .complication, pairing.hasComplication,
      let opened = state.withLock({ $0.opened })
    else { return false }
    do {
      return try opened.pairing.takeComplicationTransfer(
        day: Self.today, limit: settings.complicationBudget)
    } catch {
      DropInLog.tell(.error, error)
      return false
    }
  }

  /// Transfers a file as it is now, in order with all other transfers.
  ///
  /// It blocks its thread until the file is copied; afterwards the path may be used for something
  /// else. As with ``transferUserInfo(_:)`` the delegate is told the end, also if there is no such
  /// file.
  @discardableResult
  public func transferFile(_ file: URL, metadata: [String: Any]?) -> WCSessionFileTransfer {
    let connection = Result { () throws(WCError) in try ready().0 }
    let core = TransferCore(newIdentifier())
    let transfer = WCSessionFileTransfer(core, WCSessionFile(file, metadata))
    begin(.file(transfer), connection) { (connection, options) throws(WCError) in
      guard file.isFileURL else {
        throw WCError(.invalidParameter, "'\(file)' is no URL of a file")
      }
      var value: PropertyListValue?
      if let metadata {
        value = try Payload.take(metadata, largest: settings.largestUserInfo)
      }
      var options = options
      options.kind = TransferKind.file.rawValue
      do throws(WormholeError) {
        let sent = try connection.peer.send(
          file: file.path, metadata: FilePayload.wrap(value, file.path), options)
        let size = (try? sent.file?.size) ?? nil
        transfer.progress.totalUnitCount = Int64(max(1, size ?? 1))
        core.wasSent(sent)
      } catch {
        try tolerate(error, file: true)
      }
    }
    return transfer
  }

  /// The dictionaries that are on their way, in order; also those that an earlier life has sent.
  public var outstandingUserInfoTransfers: [WCSessionUserInfoTransfer] {
    outstanding.compactMap { if case .userInfo(let transfer) = $0 { transfer } else { nil } }
  }

  /// The files that are on their way, in order; also those that an earlier life has sent.
  public var outstandingFileTransfers: [WCSessionFileTransfer] {
    outstanding.compactMap { if case .file(let transfer) = $0 { transfer } else { nil } }
  }

  private var outstanding: [Transfer] {
    guard let connection else { return [] }
    let transfers = connection.transfers
    do throws(WormholeError) {
      try transfers.complete { () throws(WormholeError) in try connection.peer.outstanding }
    } catch {
      // The next who asks looks again.
      DropInLog.tell(.error, error)
    }
    return transfers.all.filter(\.core.isTransferring)
  }

  // MARK: Sending

  /// With the version of what is paired that whoever is ready has just read.
  private func newIdentifier() -> String {
    TransferIdentifier.random(version: max(0, known.withLock { $0.version }))
  }

  private func begin(
    _ transfer: Transfer, _ connection: Result<Connection, WCError>,
    _ send: (Connection, Wormhole.SendOptions) throws(WCError) -> Void
  ) {
    let isMain = StoringTime.isMain
    StoringTime.shared.began(transfer.core, onMain: isMain)
    defer { StoringTime.shared.returning(transfer.core, onMain: isMain) }
    var transfers: Transfers?
    do throws(WCError) {
      let connection = try connection.get()
      transfers = connection.transfers
      var options = Wormhole.SendOptions()
      options.id = transfer.core.id
      options.isIdentifierFresh = true
      options.durability = settings.durability
      options.timeToLive = settings.transferTimeout
      // Before anything can be heard of its end.
      transfers?.add(transfer)
      try send(connection, options)
    } catch {
      transfers?.remove(transfer.core.id!)
      tell(transfer, error)
    }
  }

  /// What was sent all the same.
  private func tolerate(_ error: WormholeError, file isFile: Bool = false) throws(WCError) {
    guard error.code == .notDurable else { throw WCError(error, sending: isFile) }
    DropInLog.tell(.warning, error)
  }

  private func wakeForComplication(_ connection: Connection) {
    guard connection.isStartable, !connection.isPeerThere else { return }
    DispatchQueue.global().async {
      do throws(WormholeError) {
        try connection.peer.wake()
      } catch {
        DropInLog.tell(.error, error)
      }
    }
  }

  // MARK: Ends

  func listenToEnds(_ connection: Connection) throws(WormholeError) {
    connection.stopOutcomes()
    connection.keep(
      outcomes: try connection.member.watchOutcomes(on: ends) {
        [weak self, transfers = connection.transfers] outcome in
        self?.hear(outcome, transfers) ?? false
      })
  }

  /// Whether the delegate was told: otherwise the end is told again, to the next delegate or in the
  /// next life.
  private func hear(_ outcome: Wormhole.Outcome, _ transfers: Transfers) -> Bool {
    // What is known here is a transfer, also if its receipt says no more what it was.
    guard transfers[outcome.id] != nil || TransferKind(rawValue: outcome.kind) != nil
    else { return true }
    let transfer =
      transfers[outcome.id]
      ?? Transfer(
        TransferCore(outcome.id), kind: outcome.kind, file: outcome.file,
        try? outcome.value(as: PropertyListValue.self))
    StoringTime.shared.wait(for: transfer.core)
    let isTold = callbacks.sync {
      guard let delegate else { return false }
      // Somebody may have asked meanwhile what is on its way.
      tell(transfers.remove(outcome.id) ?? transfer, Self.error(outcome.end), delegate)
      return true
    }
    return isTold
  }

  private static func error(_ end: Wormhole.Outcome.End) -> WCError? {
    switch end {
    case .delivered: nil
    case .cancelled: WCError(.genericError, "it was cancelled")
    case .expired: WCError(.transferTimedOut)
    case .givenUp(let reason): WCError(.deliveryFailed, reason)
    }
  }

  /// What was never sent.
  private func tell(_ transfer: Transfer, _ error: WCError) {
    ends.async { [self] in
      StoringTime.shared.wait(for: transfer.core)
      callbacks.async {
        guard let delegate = self.delegate else {
          return DropInLog.tell(.error, error.localizedDescription)
        }
        self.tell(transfer, error, delegate)
      }
    }
  }

  private func tell(
    _ transfer: Transfer, _ error: WCError?, _ delegate: any WCSessionDelegate
  ) {
    transfer.end(delivered: error == nil)
    switch transfer {
    case .userInfo(let transfer): delegate.session(self, didFinish: transfer, error: error)
    case .file(let transfer): delegate.session(self, didFinish: transfer, error: error)
    }
  }
}
