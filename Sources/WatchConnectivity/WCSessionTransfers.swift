public import Foundation
internal import PropertyLists
internal import Synchronization
internal import Syscalls
internal import Wormhole

/// A dictionary on its way to the counterpart.
///
/// The object that a call has returned is the one that the delegate is told the end of. One that an
/// earlier life of the program has sent gets an object anew, with the same content.
public final class WCSessionUserInfoTransfer: NSObject, NSSecureCoding, @unchecked Sendable {
  // The dictionary is never changed, and the rest is behind a monitor and an atomic.

  let core: TransferCore
  /// What is transferred.
  public let userInfo: [String: Any]
  private let isCurrent: Atomic<Bool>

  /// Whether it was sent for the complication and no later one was.
  public var isCurrentComplicationInfo: Bool { isCurrent.load(ordering: .acquiring) }
  /// Whether it is on its way.
  public var isTransferring: Bool { core.isTransferring }

  init(_ core: TransferCore, _ userInfo: [String: Any]) {
    self.core = core
    self.userInfo = userInfo
    isCurrent = Atomic(false)
  }

  /// Takes it back, if the counterpart does not have it yet; the delegate is told.
  public func cancel() { core.cancel() }

  func becomeCurrent() { isCurrent.store(true, ordering: .releasing) }
  func becomeOrdinary() { isCurrent.store(false, ordering: .releasing) }

  /// What is archived can be looked at, and is not on its way.
  public static var supportsSecureCoding: Bool { true }

  /// Writes down what is transferred.
  public func encode(with coder: NSCoder) {
    if let value = try? PropertyListValue.dictionary(any: userInfo),
      let bytes = try? BinaryPropertyList.encode(.dictionary(value))
    {
      coder.encode(Data(bytes) as NSData, forKey: "userInfo")
    }
    coder.encode(isCurrentComplicationInfo, forKey: "isCurrentComplicationInfo")
  }

  /// Reads what was transferred; nil if that cannot be read.
  public init?(coder: NSCoder) {
    guard let data = coder.decodeObject(of: NSData.self, forKey: "userInfo"),
      let value = try? BinaryPropertyList.decode(Array(Data(referencing: data)))
    else { return nil }
    core = TransferCore(nil)
    core.end()
    userInfo = value.foundationDictionary ?? [:]
    isCurrent = Atomic(coder.decodeBool(forKey: "isCurrentComplicationInfo"))
  }
}

/// A file that was received, or is on its way.
public final class WCSessionFile: NSObject, @unchecked Sendable {
  // Never changed.

  /// Where the file is.
  ///
  /// One that was received is there until the delegate's method returns.
  public let fileURL: URL
  /// What the sender has told of it.
  public let metadata: [String: Any]?

  init(_ fileURL: URL, _ metadata: [String: Any]?) {
    self.fileURL = fileURL
    self.metadata = metadata
  }
}

/// A file on its way to the counterpart.
///
/// As with ``WCSessionUserInfoTransfer``, the object is the one that the call has returned.
public final class WCSessionFileTransfer: NSObject, @unchecked Sendable {
  // The file is never changed, and the rest is behind a monitor, or Foundation's own affair.

  let core: TransferCore
  /// What is transferred: the file as it was when it was sent, which may be gone from its URL.
  public let file: WCSessionFile
  /// How far it has come: the bytes, all at once when the counterpart has it.
  public let progress: Progress
  /// Whether it is on its way.
  public var isTransferring: Bool { core.isTransferring }

  init(_ core: TransferCore, _ file: WCSessionFile) {
    self.core = core
    self.file = file
    progress = Progress(totalUnitCount: 1)
    super.init()
    progress.cancellationHandler = { [weak core] in core?.cancel() }
  }

  /// Takes it back, if the counterpart does not have it yet; the delegate is told.
  public func cancel() { core.cancel() }
}

/// What transfers of both kinds are underneath.
final class TransferCore: Sendable {
  /// Nil for one that is on no way.
  let id: String?
  private let state = Monitor(State())

  private struct State {
    var sent: Wormhole.Sent?
    var isCancelled = false
    var hasEnded = false
    var isStored = false
    /// Until when its end is kept back, once the call that has made it is over.
    var patience: Instant?
  }

  init(_ id: String?, sent: Wormhole.Sent? = nil, isStored: Bool = false) {
    self.id = id
    state.withLock { state in
      state.sent = sent
      state.isStored = isStored
    }
  }

  var isTransferring: Bool { state.withLock { !$0.hasEnded } }

  /// It is in the counterpart's inbox.
  func wasSent(_ sent: Wormhole.Sent) {
    let isCancelled = state.withLock { state in
      state.sent = sent
      return state.isCancelled
    }
    if isCancelled { cancel() }
  }

  func cancel() {
    let sent = state.withLock { state in
      state.isCancelled = true
      return state.hasEnded ? nil : state.sent
    }
    do throws(WormholeError) {
      _ = try sent?.cancel()
    } catch {
      DropInLog.tell(.error, error)
    }
  }

  func end() {
    state.withLock { state in
      state.hasEnded = true
      state.sent = nil
    }
  }

  // MARK: When its end may be told

  /// Whoever has sent it has had the time to store what is to be done at its end.
  func isStored() { state.signal { $0.isStored = true } }

  /// The call that has made it is over, so that there is something to store.
  func returned(_ patience: Duration) { state.signal { $0.patience = .now + patience } }

  /// Waits until that is so, or so long that it may be taken for granted.
  func waitUntilStored() {
    let patience = state.wait(until: nil) { $0.isStored ? .now : $0.patience }
    _ = state.wait(until: patience) { $0.isStored ? true : nil }
  }
}
