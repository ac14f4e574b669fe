internal import Dispatch
public import Foundation
internal import Wormhole
internal import WormholeDropIns
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Transfers: content that arrives even if a process dies in between.
extension WCSession {
  /// Transfers a dictionary, in order with all other transfers.
  ///
  /// When the call returns, the dictionary is in the counterpart's inbox, whether or not the
  /// counterpart runs. An error is reported to the delegate as the outcome of the transfer. No
  /// outcome is reported before the caller could store its closure for the outcome: see the article
  /// *WatchConnectivity*.
  @discardableResult
  public func transferUserInfo(_ userInfo: [String: Any] = [:]) -> WCSessionUserInfoTransfer {
    transfer(userInfo, .userInfo)
  }

  /// Transfers a dictionary for the complication, ahead of all ordinary transfers, and starts the
  /// watch's app if a start is registered.
  ///
  /// An earlier complication transfer that has not arrived becomes an ordinary transfer. If the
  /// day's budget is used up, or there is no complication, this transfer is an ordinary one too.
  @discardableResult
  public func transferCurrentComplicationUserInfo(
    _ userInfo: [String: Any] = [:]
  ) -> WCSessionUserInfoTransfer {
    transfer(userInfo, .complication)
  }

  /// Transfers a dictionary that may be as large as a value of the container; the counterpart's
  /// delegate receives it as a user info.
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
      let value = try SessionPayload.take(userInfo, largest: limit)
      // A dictionary that cannot be sent takes nothing from the budget.
      let share = takeOfBudget(kind, try found.get().1)
      let isUrgent = share != nil
      var options = options
      options.kind =
        (kind == .complication && !isUrgent ? .plainComplication : kind).rawValue
      options.isUrgent = isUrgent
      do throws(WCError) {
        try sendAndRecord(core, connection) { () throws(WormholeError) in
          try connection.peer.send(value, options)
        }
      } catch {
        share?.giveBack()
        throw error
      }
      // No outcome is reported before this call has returned: a transfer that has ended does not
      // become the current one.
      guard isUrgent else { return }
      connection.transfers.makeCurrent(transfer)
      wakeForComplication(connection)
    }
    return transfer
  }

  /// Transfers a file as it is now, in order with all other transfers.
  ///
  /// The call blocks its thread until the file is copied; afterwards the path may be used for
  /// another file. As with ``transferUserInfo(_:)``, the delegate is notified of the outcome, even
  /// if the file does not exist.
  @discardableResult
  public func transferFile(_ file: URL, metadata: [String: Any]?) -> WCSessionFileTransfer {
    let connection = Result { () throws(WCError) in try ready().0 }
    let core = TransferCore(newIdentifier())
    let transfer = WCSessionFileTransfer(core, WCSessionFile(file, metadata))
    begin(.file(transfer), connection) { (connection, options) throws(WCError) in
      guard file.isFileURL else {
        throw WCError(.invalidParameter, "'\(file)' is not the URL of a file")
      }
      var value: PropertyListValue?
      if let metadata {
        value = try SessionPayload.take(metadata, largest: settings.largestUserInfo)
      }
      var options = options
      options.kind = TransferKind.file.rawValue
      try sendAndRecord(core, connection, file: transfer) { () throws(WormholeError) in
        try connection.peer.send(
          file: file.path, metadata: FilePayload.wrap(value, file.path), options)
      }
    }
    return transfer
  }

  /// The dictionaries that are being transferred, in order, including dictionaries that an earlier
  /// run of the program has sent.
  public var outstandingUserInfoTransfers: [WCSessionUserInfoTransfer] {
    outstanding.compactMap { if case .userInfo(let transfer) = $0 { transfer } else { nil } }
  }

  /// The files that are being transferred, in order, including files that an earlier run of the
  /// program has sent.
  public var outstandingFileTransfers: [WCSessionFileTransfer] {
    outstanding.compactMap { if case .file(let transfer) = $0 { transfer } else { nil } }
  }

  private var outstanding: [Transfer] {
    guard let connection else { return [] }
    let transfers = connection.transfers
    // After a longer failure, the next access to the property tries again.
    SilentCall.attempt {
      try transfers.complete { () throws(WormholeError) in try connection.peer.pendingMessages }
    }
    return transfers.all.filter(\.core.isTransferring)
  }

  // MARK: Sending

  /// The identifier contains the version of the pairing that `ready()` has just read.
  private func newIdentifier() -> String {
    TransferIdentifier.random(version: max(0, known.withLock { $0.version }))
  }

  private func begin(
    _ transfer: Transfer, _ connection: Result<Connection, WCError>,
    _ send: (Connection, SendOptions) throws(WCError) -> Void
  ) {
    StoringTime.shared.storing(transfer.core) {
      var transfers: Transfers?
      do throws(WCError) {
        let connection = try connection.get()
        transfers = connection.transfers
        var options = SendOptions()
        options.id = transfer.core.id
        options.isIdentifierFresh = true
        options.durability = settings.durability
        options.timeToLive = settings.transferTimeout
        // The transfer is added before any notice of its outcome can arrive.
        transfers?.add(transfer)
        try send(connection, options)
      } catch {
        // A transfer that is no longer listed has ended with its container.
        guard transfers.map({ $0.remove(transfer.core.id!) != nil }) ?? true else { return }
        tell(transfer, error)
      }
    }
  }

  /// Sends the content of a transfer, and records that it was sent.
  ///
  /// Accepts an error that leaves the content sent: only its durability is in doubt.
  private func sendAndRecord(
    _ core: TransferCore, _ connection: Connection, file: WCSessionFileTransfer? = nil,
    _ send: () throws(WormholeError) -> Sent
  ) throws(WCError) {
    var sent: Sent?
    do throws(WormholeError) {
      sent = try send()
    } catch {
      guard error.code == .notDurable else { throw WCError(error, sending: file != nil) }
      DropInLog.tell(.warning, error)
      // Not found if the counterpart has handled the content already: nothing is left to cancel.
      let pending = SilentCall.attempt { try connection.peer.pendingMessages }
      sent = pending?.first { $0.id == core.id }
    }
    guard let sent else { return }
    if let file {
      let size = (try? sent.file?.size) ?? nil
      file.progress.totalUnitCount = Int64(max(1, size ?? 1))
    }
    core.wasSent(sent)
  }

  // MARK: Outcomes

  func listenToEnds(_ connection: Connection) throws(WormholeError) {
    connection.stopOutcomes()
    connection.keep(
      outcomes: try connection.member.watchOutcomes(on: ends) {
        [weak self, transfers = connection.transfers] outcome in
        self?.hear(outcome, transfers) ?? false
      })
  }

  /// Returns whether the delegate was notified.
  ///
  /// If not, the outcome is delivered again, to the next delegate or in the next run of the
  /// program.
  private func hear(_ outcome: Outcome, _ transfers: Transfers) -> Bool {
    // An outcome that is known here belongs to a transfer, even if its receipt no longer states the
    // kind.
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
      // The program may have listed its outstanding transfers in the meantime.
      tell(transfers.remove(outcome.id) ?? transfer, Self.error(outcome.status), delegate)
      return true
    }
    return isTold
  }

  private static func error(_ end: Outcome.Status) -> WCError? {
    switch end {
    case .delivered: nil
    case .cancelled: WCError(.genericError, "the transfer was cancelled")
    case .expired: WCError(.transferTimedOut)
    case .deadLettered(let reason): WCError(.deliveryFailed, reason)
    }
  }

  /// Ends the transfers in a container that no longer exists at its path: no outcome arrives from
  /// there.
  func end(lost transfers: Transfers) {
    for transfer in transfers.all where transfers.remove(transfer.core.id!) != nil {
      tell(
        transfer,
        WCError(.genericError, "the container was removed or moved away during the transfer"))
    }
  }

  /// Reports the outcome of a transfer that has no outcome in the container.
  private func tell(_ transfer: Transfer, _ error: WCError) {
    ends.async { [self] in
      StoringTime.shared.wait(for: transfer.core)
      callbacks.async {
        guard let delegate = self.delegate else {
          transfer.end(delivered: false)
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
