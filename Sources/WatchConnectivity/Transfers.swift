internal import Foundation
internal import Wormhole
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A transfer of either kind, as the delegate receives it.
enum Transfer: Sendable {
  case userInfo(WCSessionUserInfoTransfer)
  case file(WCSessionFileTransfer)

  var core: TransferCore {
    switch self {
    case .userInfo(let transfer): transfer.core
    case .file(let transfer): transfer.core
    }
  }

  /// Creates an object for a transfer that an earlier run has sent and for which no object exists
  /// here.
  init(
    _ core: TransferCore, kind: String, file: SentFile?, _ value: PropertyListValue?
  ) {
    guard kind == TransferKind.file.rawValue else {
      self = .userInfo(WCSessionUserInfoTransfer(core, value?.foundationDictionary ?? [:]))
      return
    }
    let path = FilePayload.path(value) ?? file?.name ?? ""
    let url = URL(fileURLWithPath: path, isDirectory: false)
    let transfer = WCSessionFileTransfer(
      core, WCSessionFile(url, FilePayload.metadata(value)))
    transfer.progress.totalUnitCount = Int64(max(1, file?.size ?? 1))
    self = .file(transfer)
  }

  func end(delivered isDelivered: Bool) {
    core.end()
    switch self {
    case .userInfo(let transfer): transfer.becomeOrdinary()
    case .file(let transfer):
      if isDelivered { transfer.progress.completedUnitCount = transfer.progress.totalUnitCount }
    }
  }
}

/// The transfers in progress to one counterpart, in the order of sending.
final class Transfers: Sendable {
  private struct State {
    var all: [String: (number: Int, transfer: Transfer)] = [:]
    /// Transfers of earlier runs precede all transfers of this run.
    var next = 1 << 40
    var nextOfEarlierLife = 0
    /// The transfers that have ended while a thread lists the transfers of earlier runs; nil if
    /// none does.
    var ended: Set<String>?
    var current: WCSessionUserInfoTransfer?
    /// Whether this run has sent a transfer for the complication.
    var hasCurrent = false
  }

  private let state = Monitor(State())
  /// Whether the transfers of earlier runs are included; locked while a thread lists them.
  private let isComplete = Monitor(false)

  func add(_ transfer: Transfer) {
    state.withLock { state in
      state.all[transfer.core.id!] = (state.next, transfer)
      state.next += 1
    }
  }

  /// Makes a transfer the current one for the complication; the previous one becomes an ordinary
  /// transfer.
  func makeCurrent(_ transfer: WCSessionUserInfoTransfer) {
    let before = state.withLock { state in
      defer { (state.current, state.hasCurrent) = (transfer, true) }
      transfer.becomeCurrent()
      return state.current
    }
    before?.becomeOrdinary()
  }

  @discardableResult
  func remove(_ id: String) -> Transfer? {
    state.withLock { state in
      state.ended?.insert(id)
      return state.all.removeValue(forKey: id)?.transfer
    }
  }

  subscript(id: String) -> Transfer? { state.withLock { $0.all[id]?.transfer } }

  var all: [Transfer] {
    state.withLock { $0.all.values.sorted { $0.number < $1.number }.map(\.transfer) }
  }

  // MARK: Earlier runs

  /// Adds the transfers of earlier runs, unless that was done before.
  ///
  /// If listing fails, the next call tries again.
  ///
  /// - Parameter find: returns the transfers in progress, in order.
  func complete(
    _ find: () throws(WormholeError) -> [Sent]
  ) throws(WormholeError) {
    try isComplete.withLock { isComplete throws(WormholeError) in
      guard !isComplete else { return }
      state.withLock { $0.ended = [] }
      defer { state.withLock { $0.ended = nil } }
      for sent in try find() where self[sent.id] == nil {
        do throws(WormholeError) {
          guard let kind = TransferKind(rawValue: try sent.kind) else { continue }
          let transfer = Transfer(
            TransferCore(sent.id, sent: sent), kind: kind.rawValue, file: try sent.file,
            try? sent.value(as: PropertyListValue.self))
          add(transfer, kind)
        } catch {
          // A transfer that has ended in the meantime, or is damaged, does not stop the others.
          if error.mayPass { throw error }
        }
      }
      isComplete = true
    }
  }

  /// Adds a transfer of an earlier run, unless it has ended since the listing began.
  private func add(_ transfer: Transfer, _ kind: TransferKind) {
    let id = transfer.core.id!
    state.withLock { state in
      guard state.ended?.contains(id) == false, state.all[id] == nil else { return }
      state.all[id] = (state.nextOfEarlierLife, transfer)
      state.nextOfEarlierLife += 1
      guard kind == .complication, case .userInfo(let info) = transfer, !state.hasCurrent
      else { return }
      state.current?.becomeOrdinary()
      info.becomeCurrent()
      state.current = info
    }
  }
}
