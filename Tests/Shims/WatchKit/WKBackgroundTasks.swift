public import Foundation

/// A task for which the system has woken the app.
///
/// No system wakes programs here: a test makes a task itself, and hands it to the delegate.
open class WKRefreshBackgroundTask: NSObject, @unchecked Sendable {
  // The state is accessed only under the lock.
  private let lock = NSLock()
  private var state = (isCompleted: false, expirationHandler: (() -> Void)?.none)

  /// The value that the app gave when it scheduled the task: always nil.
  open var userInfo: (any NSSecureCoding & NSObjectProtocol)? { nil }

  /// The closure for a task that takes too long; it is released when the task is completed.
  open var expirationHandler: (() -> Void)? {
    get { locked { $0.expirationHandler } }
    set { locked { $0.expirationHandler = $0.isCompleted ? nil : newValue } }
  }

  /// Whether the app has completed the task; only here.
  public var isCompleted: Bool { locked { $0.isCompleted } }

  /// Completes the task; no snapshot follows.
  open func setTaskCompletedWithSnapshot(_ refreshSnapshot: Bool) {
    locked { $0 = (true, nil) }
  }

  /// Completes the task.
  open func setTaskCompleted() { setTaskCompletedWithSnapshot(false) }

  private func locked<Result>(
    _ body: (inout (isCompleted: Bool, expirationHandler: (() -> Void)?)) -> Result
  ) -> Result {
    lock.lock()
    defer { lock.unlock() }
    return body(&state)
  }
}

/// A task for which the app asked, see `scheduleBackgroundRefresh`.
public final class WKApplicationRefreshBackgroundTask: WKRefreshBackgroundTask,
  @unchecked Sendable  // The class above has the lock.
{}

/// A task for content that has arrived through WatchConnectivity.
public final class WKWatchConnectivityRefreshBackgroundTask: WKRefreshBackgroundTask,
  @unchecked Sendable  // The class above has the lock.
{}

/// A task for downloads and uploads.
public final class WKURLSessionRefreshBackgroundTask: WKRefreshBackgroundTask, @unchecked Sendable {
  // The state is behind the lock of the class above.

  /// The session of the transfers: always empty.
  public var sessionIdentifier: String { "" }
}

/// A task for a new picture of the app.
public final class WKSnapshotRefreshBackgroundTask: WKRefreshBackgroundTask, @unchecked Sendable {
  // The state is behind the lock of the class above.

  /// Whether the app should return to its first state.
  public var returnToDefaultState: Bool { false }

  /// Completes the task; the other arguments have no effect.
  public func setTaskCompleted(
    restoredDefaultState: Bool, estimatedSnapshotExpiration: Date?,
    userInfo: (any NSSecureCoding & NSObjectProtocol)?
  ) { setTaskCompleted() }
}
