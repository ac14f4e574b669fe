internal import DropIns
internal import Foundation
internal import Wormhole

extension WCError {
  /// - Parameter reason: the cause, which distinguishes this error from errors with the same code.
  package init(_ code: Code, _ reason: String? = nil) {
    let text = reason.map { "\(code.text): \($0)" } ?? code.text
    self.init(
      _nsError: NSError(
        domain: WCErrorDomain, code: code.rawValue, userInfo: [NSLocalizedDescriptionKey: text]))
  }

  init(_ error: NotAPropertyList) { self.init(.payloadUnsupportedTypes, "\(error)") }

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
    self.init(code, "\(error)")
  }
}

extension WCError.Code {
  /// The text for people: the cause, and the next step.
  var text: String {
    switch self {
    case .genericError: "the watch session failed"
    case .sessionNotSupported:
      "this process has no part in a watch session; set WORMHOLE_ROLE to 'phone' or 'watch', and "
        + "WORMHOLE_CONTAINER or WORMHOLE_GROUP, or call WCSession.configure"
    case .sessionMissingDelegate: "the session has no delegate; set it before activating"
    case .sessionNotActivated:
      "the session is not activated; call activate(), and wait for the delegate's callback"
    case .deviceNotPaired:
      "no watch is paired; pair a watch with 'wormhole watchconnectivity pair'"
    case .watchAppNotInstalled: "the watch app is not installed"
    case .notReachable: "the counterpart is not reachable; it does not run, or is out of range"
    case .invalidParameter: "the argument cannot be used"
    case .payloadTooLarge: "the message exceeds the size limit; send a file instead"
    case .payloadUnsupportedTypes: "only property-list values can be sent"
    case .messageReplyFailed: "the counterpart gave no reply that could be delivered"
    case .messageReplyTimedOut: "no reply came in time"
    case .fileAccessDenied: "the file cannot be read"
    case .deliveryFailed: "the counterpart could not handle the message"
    case .insufficientSpace: "the disk or the queue is full"
    case .sessionInactive:
      "the session is changing to another watch; activate the session again after its deactivation"
    case .transferTimedOut: "it was not received in time"
    case .companionAppNotInstalled: "the phone app is not installed"
    case .watchOnlyApp: "the watch app has no app on the phone"
    }
  }
}
