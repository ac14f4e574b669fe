import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeDropIns

@testable import AppGroups

/// Arguments and stored values that few programs have.
@Suite(.blocking) struct RareArgumentTests {
  private let name: String

  init() throws {
    try GroupsRoot.use()
    name = "test.\(UUID().uuidString)"
  }

  /// Any program of the group may have stored such a number: reading the number must not end a
  /// program.
  @Test func aRealThatNoIntegerHoldsIsZeroAsAnInteger() throws {
    let defaults = try #require(UserDefaults(suiteName: "group.\(name)"))
    for real in [Double.infinity, -.infinity, .nan, 1e300, 0x1p63, -0x1.0000000000001p63] {
      defaults.set(real, forKey: "real")
      #expect(defaults.integer(forKey: "real") == 0, "\(real)")
    }
    for (real, whole) in [(-0x1p63, Int.min), (0x1p62, 1 << 62), (-0.0, 0)] {
      defaults.set(real, forKey: "real")
      #expect(defaults.integer(forKey: "real") == whole, "\(real)")
    }
  }

  @Test func aRegistrationWithoutANameHasNoToken() {
    var token: Int32 = 17
    let checked = notify_register_check(nil, &token)
    #expect(checked == UInt32(NOTIFY_STATUS_INVALID_NAME))
    #expect(token == NOTIFY_TOKEN_INVALID)
    token = 17
    let dispatched = notify_register_dispatch(nil, &token, .global()) { _ in }
    #expect(dispatched == UInt32(NOTIFY_STATUS_INVALID_NAME))
    #expect(token == NOTIFY_TOKEN_INVALID)
    #expect(!notify_is_valid_token(token))
    #expect(notify_cancel(token) == UInt32(NOTIFY_STATUS_INVALID_TOKEN))
    #expect(notify_register_check(name, nil) == UInt32(NOTIFY_STATUS_INVALID_NAME))
  }

  /// A caller that only looks at the token must not take it for a registration.
  @Test func aRegistrationWithoutAQueueHasNoToken() {
    var token: Int32 = 17
    let status = notify_register_dispatch(name, &token, nil) { _ in }
    #expect(status == UInt32(NOTIFY_STATUS_FAILED))
    #expect(token == NOTIFY_TOKEN_INVALID)
  }

  /// No container accepts the names: each further attempt would only write another log entry.
  @Test func anObserverOfANameThatCannotExistIsNotRetried() {
    for name in ["", String(repeating: "x", count: 5000)] {
      let observation = DarwinNotification(name).observe(retryingIn: Isolation(nil)) {}
      let isRefused = observation == nil
      #expect(isRefused, "a name of \(name.utf8.count) bytes")
    }
  }
}
