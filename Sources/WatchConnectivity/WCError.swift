public import Foundation

/// The domain of ``WCError``.
public let WCErrorDomain = "WCErrorDomain"

/// What could not be done with a watch session.
///
/// It is an `NSError` of the domain ``WCErrorDomain`` too, and can be caught as either:
/// `catch WCError.notReachable`, `error as? WCError`, `error as NSError`. What it says of itself
/// tells what to do next.
public struct WCError: _BridgedStoredNSError {
  /// The error as Foundation has it.
  public let _nsError: NSError

  /// The same error, which has to be of this domain.
  public init(_nsError error: NSError) {
    precondition(error.domain == WCErrorDomain)
    _nsError = error
  }

  /// The domain of these errors.
  public static var errorDomain: String { WCErrorDomain }
  /// The same, as Foundation asks for it.
  public static var _nsErrorDomain: String { WCErrorDomain }

  /// What kind of failure it is.
  public enum Code: Int, _ErrorCodeProtocol, Sendable, CaseIterable {
    /// The error that the code stands for.
    public typealias _ErrorType = WCError

    /// Something that no other code says: another process is this side of the pairing already, the
    /// container cannot be used, or a transfer was cancelled.
    case genericError = 7001
    /// This process is neither phone nor watch: nobody has said which, and in which container.
    case sessionNotSupported = 7002
    /// The session has no delegate.
    case sessionMissingDelegate = 7003
    /// The session has not been activated, or not successfully.
    case sessionNotActivated = 7004
    /// The phone has no watch, or the watch is not one that the phone knows.
    case deviceNotPaired = 7005
    /// The watch has no app.
    case watchAppNotInstalled = 7006
    /// The counterpart does not run, or is out of range.
    case notReachable = 7007
    /// An argument that cannot be used, as a URL that is none of a file.
    case invalidParameter = 7008
    /// More bytes than the limit allows.
    case payloadTooLarge = 7009
    /// A dictionary holds something that no property list can.
    case payloadUnsupportedTypes = 7010
    /// The counterpart ended before it replied, or replied what cannot be sent.
    case messageReplyFailed = 7011
    /// No reply came in time.
    case messageReplyTimedOut = 7012
    /// The file is not there, cannot be read, or is no regular file.
    case fileAccessDenied = 7013
    /// The counterpart had nobody to handle it, or could not, however often it tried.
    case deliveryFailed = 7014
    /// The disk, or the counterpart's queue, is full.
    case insufficientSpace = 7015
    /// The phone is changing to another watch: activate the session again.
    case sessionInactive = 7016
    /// What was sent was not received in time.
    case transferTimedOut = 7017
    /// The phone has no app.
    case companionAppNotInstalled = 7018
    /// The watch app is one that has no app on the phone.
    case watchOnlyApp = 7019
  }
}

// The codes by which errors are matched: `catch WCError.notReachable`.
extension WCError {
  /// See ``Code/genericError``.
  public static var genericError: Code { .genericError }
  /// See ``Code/sessionNotSupported``.
  public static var sessionNotSupported: Code { .sessionNotSupported }
  /// See ``Code/sessionMissingDelegate``.
  public static var sessionMissingDelegate: Code { .sessionMissingDelegate }
  /// See ``Code/sessionNotActivated``.
  public static var sessionNotActivated: Code { .sessionNotActivated }
  /// See ``Code/deviceNotPaired``.
  public static var deviceNotPaired: Code { .deviceNotPaired }
  /// See ``Code/watchAppNotInstalled``.
  public static var watchAppNotInstalled: Code { .watchAppNotInstalled }
  /// See ``Code/notReachable``.
  public static var notReachable: Code { .notReachable }
  /// See ``Code/invalidParameter``.
  public static var invalidParameter: Code { .invalidParameter }
  /// See ``Code/payloadTooLarge``.
  public static var payloadTooLarge: Code { .payloadTooLarge }
  /// See ``Code/payloadUnsupportedTypes``.
  public static var payloadUnsupportedTypes: Code { .payloadUnsupportedTypes }
  /// See ``Code/messageReplyFailed``.
  public static var messageReplyFailed: Code { .messageReplyFailed }
  /// See ``Code/messageReplyTimedOut``.
  public static var messageReplyTimedOut: Code { .messageReplyTimedOut }
  /// See ``Code/fileAccessDenied``.
  public static var fileAccessDenied: Code { .fileAccessDenied }
  /// See ``Code/deliveryFailed``.
  public static var deliveryFailed: Code { .deliveryFailed }
  /// See ``Code/insufficientSpace``.
  public static var insufficientSpace: Code { .insufficientSpace }
  /// See ``Code/sessionInactive``.
  public static var sessionInactive: Code { .sessionInactive }
  /// See ``Code/transferTimedOut``.
  public static var transferTimedOut: Code { .transferTimedOut }
  /// See ``Code/companionAppNotInstalled``.
  public static var companionAppNotInstalled: Code { .companionAppNotInstalled }
  /// See ``Code/watchOnlyApp``.
  public static var watchOnlyApp: Code { .watchOnlyApp }
}

// With this `error as NSError` and `catch let e as NSError` match, as they do on devices.
extension WCError: _ObjectiveCBridgeable {
  /// The error as Foundation has it.
  public func _bridgeToObjectiveC() -> NSError { _nsError }

  /// Takes an error that is known to be of this domain.
  public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout WCError?) {
    result = WCError(_nsError: source)
  }

  /// Takes an error of this domain.
  public static func _conditionallyBridgeFromObjectiveC(
    _ source: NSError, result: inout WCError?
  ) -> Bool {
    guard source.domain == WCErrorDomain else { return false }
    result = WCError(_nsError: source)
    return true
  }

  /// Takes an error that is known to be of this domain.
  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> WCError {
    WCError(_nsError: source!)  // Nobody bridges what is not there.
  }
}
