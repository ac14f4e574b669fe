public import Dispatch
internal import Wormhole
internal import WormholeDropIns
internal import WormholeSyscalls

// The functions of `notify.h` over Darwin notifications. They share their names with
// `CFNotificationCenterGetDarwinNotifyCenter()`, as on devices.

/// The call has succeeded.
public let NOTIFY_STATUS_OK: Int32 = 0
/// The name is missing.
public let NOTIFY_STATUS_INVALID_NAME: Int32 = 1
/// The token belongs to no registration.
public let NOTIFY_STATUS_INVALID_TOKEN: Int32 = 2
/// The call has failed; ``DropInLog`` reports the reason.
public let NOTIFY_STATUS_FAILED: Int32 = 1_000_000
/// The token of a registration that has failed.
public let NOTIFY_TOKEN_INVALID: Int32 = -1

/// Notifies all programs that have registered for a name.
@discardableResult
public func notify_post(_ name: UnsafePointer<CChar>!) -> UInt32 {
  guard let name else { return UInt32(NOTIFY_STATUS_INVALID_NAME) }
  let posted: Void? = SilentCall.attempt { try DarwinNotification(String(cString: name)).post() }
  return UInt32(posted == nil ? NOTIFY_STATUS_FAILED : NOTIFY_STATUS_OK)
}

/// Calls a closure on a queue whenever a name is posted, until the token is cancelled.
///
/// The closure receives the token. A closure of the main actor is called on the main queue.
@discardableResult
public func notify_register_dispatch(
  _ name: UnsafePointer<CChar>!, _ out_token: UnsafeMutablePointer<Int32>!,
  _ queue: DispatchQueue!, _ handler: (@isolated(any) (Int32) -> Void)!
) -> UInt32 {
  guard let queue, let handler else {
    out_token?.pointee = NOTIFY_TOKEN_INVALID
    let missing = queue == nil ? "queue" : "handler"
    DropInLog.tell(.error, "cannot register for a notification: the \(missing) is nil")
    return UInt32(NOTIFY_STATUS_FAILED)
  }
  let callback = Handler(handler)
  return NotifyTokens.register(name, out_token) { token, gate in
    callback.call(on: queue) { gate.isOpen ? token : nil }
  }
}

/// Registers for a name, so that `notify_check` reports whether it was posted.
@discardableResult
public func notify_register_check(
  _ name: UnsafePointer<CChar>!, _ out_token: UnsafeMutablePointer<Int32>!
) -> UInt32 {
  NotifyTokens.register(name, out_token) { token, _ in NotifyTokens.posted(token) }
}

/// Reports whether a name was posted since the previous call; the first call always reports a post.
@discardableResult
public func notify_check(_ token: Int32, _ check: UnsafeMutablePointer<Int32>!) -> UInt32 {
  guard let isPosted = NotifyTokens.takePosted(token) else {
    return UInt32(NOTIFY_STATUS_INVALID_TOKEN)
  }
  check?.pointee = isPosted ? 1 : 0
  return UInt32(NOTIFY_STATUS_OK)
}

/// Ends a registration; a call that waits in a queue is not made.
@discardableResult
public func notify_cancel(_ token: Int32) -> UInt32 {
  UInt32(NotifyTokens.cancel(token) ? NOTIFY_STATUS_OK : NOTIFY_STATUS_INVALID_TOKEN)
}

/// Returns whether a token belongs to a registration.
public func notify_is_valid_token(_ token: Int32) -> Bool { NotifyTokens.isValid(token) }

/// The registrations of this process.
private enum NotifyTokens {
  private struct Registration {
    var observation: AnyCancellable?
    let gate: Gate
    var isPosted = true
  }

  private static let state = Monitor((last: Int32(0), registrations: [Int32: Registration]()))

  static func register(
    _ name: UnsafePointer<CChar>?, _ token: UnsafeMutablePointer<Int32>?,
    _ posted: @escaping @Sendable (Int32, Gate) -> Void
  ) -> UInt32 {
    token?.pointee = NOTIFY_TOKEN_INVALID
    guard let name, let token else { return UInt32(NOTIFY_STATUS_INVALID_NAME) }
    let gate = Gate()
    let number = state.withLock { state in
      state.last &+= 1
      state.registrations[state.last] = Registration(observation: nil, gate: gate)
      return state.last
    }
    token.pointee = number
    let observation = SilentCall.attempt {
      // A post continues to the user's queue, and does not wait for it.
      try DarwinNotification(String(cString: name)).observeHere { posted(number, gate) }
    }
    guard let observation else {
      _ = cancel(number)
      token.pointee = NOTIFY_TOKEN_INVALID
      return UInt32(NOTIFY_STATUS_FAILED)
    }
    state.withLock { $0.registrations[number]?.observation = observation }
    return UInt32(NOTIFY_STATUS_OK)
  }

  static func posted(_ token: Int32) {
    state.withLock { $0.registrations[token]?.isPosted = true }
  }

  static func takePosted(_ token: Int32) -> Bool? {
    state.withLock { state in
      defer { state.registrations[token]?.isPosted = false }
      return state.registrations[token]?.isPosted
    }
  }

  static func cancel(_ token: Int32) -> Bool {
    guard let gone = state.withLock({ $0.registrations.removeValue(forKey: token) }) else {
      return false
    }
    gone.gate.close()
    gone.observation?.cancel()
    return true
  }

  static func isValid(_ token: Int32) -> Bool {
    state.withLock { $0.registrations[token] != nil }
  }
}
