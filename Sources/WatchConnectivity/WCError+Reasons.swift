internal import Foundation
internal import Wormhole
internal import WormholeDropIns

extension WCError {
  /// - Parameters:
  ///   - reason: the cause, which distinguishes this error from errors with the same code.
  ///   - hasAdvice: whether the reason contains the next step already.
  package init(_ code: Code, _ reason: String? = nil, hasAdvice: Bool = false) {
    var text = reason.map { "\(code.meaning): \($0)" } ?? code.meaning
    if !hasAdvice, let advice = code.advice { text += "; \(advice)" }
    self.init(
      _nsError: NSError(
        domain: WCErrorDomain, code: code.rawValue, userInfo: [NSLocalizedDescriptionKey: text]))
  }

  init(_ error: NotAPropertyList) {
    self.init(error.isTooDeep ? .payloadTooLarge : .payloadUnsupportedTypes, "\(error)")
  }

  /// Converts a failure of the container to an error of the session.
  init(_ error: WormholeError, sending isFile: Bool = false) {
    let code: Code =
      switch error.code {
      case .unreachable: .notReachable
      case .timedOut: .transferTimedOut
      case .rejected, .deadLettered: .deliveryFailed
      case .tooLarge: .payloadTooLarge
      case .invalidValue: .payloadUnsupportedTypes
      case .full: .insufficientSpace
      case .notJoined: .sessionNotActivated
      case .notFound, .permissionDenied, .refused, .conflict:
        isFile ? .fileAccessDenied : .genericError
      default: .genericError
      }
    self.init(code, "\(error)", hasAdvice: error.hint != nil)
  }
}

extension WCError.Code {
  /// The kind of the failure, for people.
  fileprivate var meaning: String {
    switch self {
    case .genericError: "the watch session failed"
    case .sessionNotSupported: "this process is neither the phone nor a watch"
    case .sessionMissingDelegate: "the session has no delegate"
    case .sessionNotActivated: "the session is not activated"
    case .deviceNotPaired: "no watch is paired"
    case .watchAppNotInstalled: "the watch app is not installed"
    case .notReachable: "the counterpart does not run, or is out of range"
    case .invalidParameter: "the call has an invalid argument"
    case .payloadTooLarge: "the content has more bytes than the limit allows"
    case .payloadUnsupportedTypes: "only property-list values can be sent"
    case .messageReplyFailed: "the counterpart ended before its reply, or could not send its reply"
    case .messageReplyTimedOut: "no reply arrived before the deadline"
    case .fileAccessDenied: "the file does not exist, cannot be read, or is not a regular file"
    case .deliveryFailed: "the counterpart could not handle the content"
    case .insufficientSpace: "the disk is full, or the counterpart's queue has reached its limit"
    case .sessionInactive: "the session is changing to another watch"
    case .transferTimedOut: "the counterpart did not receive the content before the deadline"
    case .companionAppNotInstalled: "the phone app is not installed"
    case .watchOnlyApp: "the watch app has no counterpart on the phone"
    }
  }

  /// The next step.
  fileprivate var advice: String? {
    switch self {
    case .sessionNotSupported:
      "set WORMHOLE_ROLE to 'phone' or 'watch', and WORMHOLE_CONTAINER or WORMHOLE_GROUP, or call "
        + "WCSession.configure"
    case .sessionMissingDelegate: "set the delegate before calling activate()"
    case .sessionNotActivated: "call activate(), and wait for the delegate's callback"
    case .deviceNotPaired: "pair a watch with 'wormhole watchconnectivity pair'"
    case .watchAppNotInstalled:
      "install the app with 'wormhole watchconnectivity install watch'"
    case .companionAppNotInstalled:
      "install the app with 'wormhole watchconnectivity install phone'"
    case .notReachable:
      "start the counterpart's program, or check the range with 'wormhole watchconnectivity state'"
    case .payloadTooLarge: "send less, or transfer a file"
    case .payloadUnsupportedTypes: "convert the value to a string or data"
    case .messageReplyTimedOut: "check whether the counterpart is suspended or overloaded"
    case .insufficientSpace:
      "free space on the disk, or wait until the counterpart has handled its queue"
    case .sessionInactive: "activate the session again after its deactivation"
    case .genericError, .invalidParameter, .messageReplyFailed, .fileAccessDenied, .deliveryFailed,
      .transferTimedOut, .watchOnlyApp:
      nil
    }
  }
}
