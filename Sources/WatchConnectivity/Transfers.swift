internal import Foundation
internal import PropertyLists
internal import Syscalls
internal import Wormhole

/// A transfer of either kind, as the delegate gets it.
enum Transfer: Sendable {
  case userInfo(WCSessionUserInfoTransfer)
  case file(WCSessionFileTransfer)

  var core: TransferCore {
    switch self {
    case .userInfo(let transfer): transfer.core
    case .file(let transfer): transfer.core
    }
  }

  /// What an earlier life has sent, and nobody here has an object of.
  init(
    _ core: TransferCore, kind: String, file: Wormhole.SentFile?, _ value: PropertyListValue?
  ) {
    core.isStored()
    guard kind == TransferKind.file.rawValue else {
      self = .userInfo(
        WCSessionUserInfoTransfer(
          core, value?.foundationDictionary ?? [:],
          isForComplication: kind == TransferKind.complication.rawValue))
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

/// What is on its way to one counterpart, in the order in which it was sent.
final class Transfers: Sendable {
  private struct State {
    var all: [String: (number: Int, transfer: Transfer)] = [:]
    /// Those of earlier lives come before all of this one.
    var next = 1 << 40
    var nextOfEarlierLife = 0
    /// The member whose earlier lives have been looked at.
    var isComplete = false
    var current: WCSessionUserInfoTransfer?
  }

  private let state = Monitor(State())

  func add(_ transfer: Transfer) {
    state.withLock { state in
      state.all[transfer.core.id!] = (state.next, transfer)
      state.next += 1
    }
  }

  /// Makes it the one for the complication; the one before is an ordinary one from now on.
  func makeCurrent(_ transfer: WCSessionUserInfoTransfer) {
    let before = state.withLock { state in
      defer { state.current = transfer }
      return state.current
    }
    before?.becomeOrdinary()
  }

  func remove(_ id: String) { state.withLock { _ = $0.all.removeValue(forKey: id) } }

  subscript(id: String) -> Transfer? { state.withLock { $0.all[id]?.transfer } }

  /// Adds one of an earlier life, unless it is known.
  ///
  /// - Returns: the one that is known from now on.
  func add(
    id: String, ofEarlierLife make: () throws(WormholeError) -> Transfer
  ) throws(WormholeError) -> Transfer {
    if let known = self[id] { return known }
    let transfer = try make()
    return state.withLock { state in
      if let known = state.all[id] { return known.transfer }
      state.all[id] = (state.nextOfEarlierLife, transfer)
      state.nextOfEarlierLife += 1
      return transfer
    }
  }

  var all: [Transfer] {
    state.withLock { $0.all.values.sorted { $0.number < $1.number }.map(\.transfer) }
  }

  /// Whether nobody has looked yet at what earlier lives have sent; from now on somebody has.
  func beginToComplete() -> Bool {
    state.withLock { state in
      defer { state.isComplete = true }
      return !state.isComplete
    }
  }
}
