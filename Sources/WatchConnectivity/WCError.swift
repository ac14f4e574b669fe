public import Foundation

/// The domain of ``WCError``.
public let WCErrorDomain = "WCErrorDomain"

/// A failure of a watch session.
///
/// The error is also an `NSError` of the domain ``WCErrorDomain``, and can be caught as either
/// type: `catch WCError.notReachable`, `error as? WCError`, `error as NSError`. Its description
/// states what to do next.
public struct WCError: _BridgedStoredNSError {
  /// The error as Foundation's type.
  public let _nsError: NSError

  /// Wraps an `NSError` of the domain ``WCErrorDomain``; any other domain is a programming error.
  public init(_nsError error: NSError) {
    precondition(error.domain == WCErrorDomain)
    _nsError = error
  }

  /// The domain of these errors.
  public static var errorDomain: String { WCErrorDomain }
  /// The same domain, under the name that Foundation requires.
  public static var _nsErrorDomain: String { WCErrorDomain }

  /// The kind of a failure.
  public enum Code: Int, _ErrorCodeProtocol, Sendable, CaseIterable {
    /// The error type that the code belongs to.
    public typealias _ErrorType = WCError

    /// A failure that has no code of its own: another process already has this role in the pairing,
    /// the container cannot be used, or a transfer was cancelled.
    case genericError = 7001
    /// This process is neither phone nor watch: its role and its container are not configured.
    case sessionNotSupported = 7002
    /// The session has no delegate.
    case sessionMissingDelegate = 7003
    /// The session has not been activated, or not successfully.
    case sessionNotActivated = 7004
    /// The phone has no watch, or does not know this watch.
    case deviceNotPaired = 7005
    /// The watch has no app.
    case watchAppNotInstalled = 7006
    /// The counterpart does not run, or is out of range.
    case notReachable = 7007
    /// An unusable argument, such as a URL that does not name a file.
    case invalidParameter = 7008
    /// More bytes than the limit allows.
    case payloadTooLarge = 7009
    /// A dictionary contains a value that no property list can contain.
    case payloadUnsupportedTypes = 7010
    /// The counterpart ended before it replied, or its reply cannot be sent.
    case messageReplyFailed = 7011
    /// No reply arrived in time.
    case messageReplyTimedOut = 7012
    /// The file does not exist, cannot be read, or is not a regular file.
    case fileAccessDenied = 7013
    /// The counterpart had no handler for the content, or failed to handle it in every attempt.
    case deliveryFailed = 7014
    /// The disk, or the counterpart's queue, is full.
    case insufficientSpace = 7015
    /// The phone is changing to another watch: activate the session again.
    case sessionInactive = 7016
    /// The content was not received in time.
    case transferTimedOut = 7017
    /// The phone has no app.
    case companionAppNotInstalled = 7018
    /// The watch app is an app without a counterpart on the phone.
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

// With these conversions `error as NSError` and `catch let e as NSError` match, as on devices.
extension WCError: _ObjectiveCBridgeable {
  /// The error as Foundation's type.
  public func _bridgeToObjectiveC() -> NSError { _nsError }

  /// Converts an error whose domain is known to be ``WCErrorDomain``.
  public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout WCError?) {
    result = WCError(_nsError: source)
  }

  /// Converts an error of the domain ``WCErrorDomain``.
  public static func _conditionallyBridgeFromObjectiveC(
    _ source: NSError, result: inout WCError?
  ) -> Bool {
    guard source.domain == WCErrorDomain else { return false }
    result = WCError(_nsError: source)
    return true
  }

  /// Converts an error whose domain is known to be ``WCErrorDomain``.
  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> WCError {
    WCError(_nsError: source!)  // No caller bridges a missing error.
  }
}
