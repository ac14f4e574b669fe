public import Foundation
internal import Synchronization
internal import Wormhole
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A dictionary on its way to the counterpart.
///
/// The delegate receives the outcome with the object that the call has returned. For a transfer
/// that an earlier run of the program has sent, there is a new object with the same content.
public final class WCSessionUserInfoTransfer: NSObject, NSSecureCoding, @unchecked Sendable {
  // The dictionary never changes; all other state is behind a monitor and an atomic.

  let core: TransferCore
  /// The transferred dictionary.
  public let userInfo: [String: Any]
  private let isCurrent: Atomic<Bool>

  /// Whether the transfer is the latest one that was sent for the complication.
  public var isCurrentComplicationInfo: Bool { isCurrent.load(ordering: .acquiring) }
  /// Whether the transfer is in progress.
  public var isTransferring: Bool { core.isTransferring }

  init(_ core: TransferCore, _ userInfo: [String: Any]) {
    self.core = core
    self.userInfo = userInfo
    isCurrent = Atomic(false)
  }

  /// Cancels the transfer, unless the counterpart has received it already; the delegate is
  /// notified.
  public func cancel() { core.cancel() }

  func becomeCurrent() { isCurrent.store(true, ordering: .releasing) }
  func becomeOrdinary() { isCurrent.store(false, ordering: .releasing) }

  /// An archived transfer can be inspected, and is not in progress.
  public static var supportsSecureCoding: Bool { true }

  /// Encodes the transferred dictionary.
  public func encode(with coder: NSCoder) {
    if let value = try? PropertyListValue.dictionary(any: userInfo),
      let bytes = try? BinaryPropertyList.encode(.dictionary(value))
    {
      coder.encode(Data(bytes) as NSData, forKey: "userInfo")
    }
    coder.encode(isCurrentComplicationInfo, forKey: "isCurrentComplicationInfo")
  }

  /// Decodes the transferred dictionary; nil if the data cannot be read.
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

/// A file that was received, or is being transferred.
public final class WCSessionFile: NSObject, @unchecked Sendable {
  // All properties are immutable.

  /// The location of the file.
  ///
  /// A received file exists until the delegate's method returns.
  public let fileURL: URL
  /// The metadata that the sender has added.
  public let metadata: [String: Any]?

  init(_ fileURL: URL, _ metadata: [String: Any]?) {
    self.fileURL = fileURL
    self.metadata = metadata
  }
}

/// A file on its way to the counterpart.
///
/// As with ``WCSessionUserInfoTransfer``, the delegate receives the object that the call has
/// returned.
public final class WCSessionFileTransfer: NSObject, @unchecked Sendable {
  // The file never changes; the rest is behind a monitor, or is in Foundation's care, as
  // `Progress`.

  let core: TransferCore
  /// The transferred file with the content that it had when sent; its URL may no longer lead to a
  /// file.
  public let file: WCSessionFile
  /// The progress in bytes; all bytes are counted at once when the counterpart has the file.
  public let progress: Progress
  /// Whether the transfer is in progress.
  public var isTransferring: Bool { core.isTransferring }

  init(_ core: TransferCore, _ file: WCSessionFile) {
    self.core = core
    self.file = file
    progress = Progress(totalUnitCount: 1)
    super.init()
    progress.cancellationHandler = { [weak core] in core?.cancel() }
  }

  /// Cancels the transfer, unless the counterpart has received it already; the delegate is
  /// notified.
  public func cancel() { core.cancel() }
}

/// The state that both kinds of transfers have in common.
final class TransferCore: Sendable {
  /// Nil for a transfer that was decoded from an archive.
  let id: String?
  private let state = Monitor(State())

  private struct State {
    var sent: Sent?
    var isCancelled = false
    var hasEnded = false
    /// The burst in which this process made the transfer; nil for a transfer of an earlier run.
    var burst: Burst?
    /// When the call that made the transfer has returned.
    var returned: Instant?
  }

  init(_ id: String?, sent: Sent? = nil) {
    self.id = id
    state.withLock { $0.sent = sent }
  }

  var isTransferring: Bool { state.withLock { !$0.hasEnded } }

  /// Records that the transfer is in the counterpart's inbox.
  func wasSent(_ sent: Sent) {
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
    // The caller cannot find out that the call has failed, and does not repeat it.
    SilentCall.attempt { () throws(WormholeError) in try sent?.cancel() }
  }

  func end() {
    state.withLock { state in
      state.hasEnded = true
      state.sent = nil
    }
  }

  // MARK: When the outcome may be reported

  func began(in burst: Burst) { state.withLock { $0.burst = burst } }

  /// Records the return of the call that made the transfer: from now on, the caller has an object
  /// to store.
  func returned() { state.signal { $0.returned = .now } }

  /// Waits for the return of the call that makes the transfer; nil if no call of this process does.
  func waitForReturn() -> (Burst, Instant)? {
    guard let burst = state.withLock({ $0.burst }) else { return nil }
    return state.wait(until: nil) { $0.returned }.map { (burst, $0) }
  }
}
