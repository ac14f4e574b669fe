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

/// What is on its way to one counterpart, in the order in which it was sent.
final class Transfers: Sendable {
  private struct State {
    var all: [String: (number: Int, transfer: Transfer)] = [:]
    /// Those of earlier lives come before all of this one.
    var next = 1 << 40
    var nextOfEarlierLife = 0
    /// What has ended while somebody looks at what earlier lives have sent; nil if nobody does.
    var ended: Set<String>?
    var current: WCSessionUserInfoTransfer?
    /// Whether this life has sent one for the complication.
    var hasCurrent = false
  }

  private let state = Monitor(State())
  /// Whether what earlier lives have sent is among them; held while somebody looks.
  private let isComplete = Monitor(false)

  func add(_ transfer: Transfer) {
    state.withLock { state in
      state.all[transfer.core.id!] = (state.next, transfer)
      state.next += 1
    }
  }

  /// Makes it the one for the complication; the one before is an ordinary one from now on.
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

  // MARK: Earlier lives

  /// Adds what earlier lives have sent, unless that was done; if it cannot be, it is done next
  /// time.
  ///
  /// - Parameter find: what is on its way, in order.
  func complete(
    _ find: () throws(WormholeError) -> [Wormhole.Sent]
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
          // One that has ended meanwhile, or is damaged, is in nobody's way.
          if error.mayPass { throw error }
        }
      }
      isComplete = true
    }
  }

  /// Adds one of an earlier life; not one that has ended since somebody began to look.
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
