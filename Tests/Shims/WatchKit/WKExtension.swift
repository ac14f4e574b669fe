@_exported public import Foundation

/// The state of an app.
public enum WKApplicationState: Int, Sendable {
  /// The app is in the foreground and receives events.
  case active = 0
  /// The app is in the foreground and receives no events.
  case inactive = 1
  /// The app is in the background.
  case background = 2
}

/// The watch's extension: here, an object that keeps a delegate and calls it never.
@preconcurrency @MainActor open class WKExtension: NSObject {
  private static let only = WKExtension()

  /// Returns the extension of this process.
  open class func shared() -> WKExtension { only }

  /// The object for events, which the program can call itself.
  open weak var delegate: (any WKExtensionDelegate)?
  /// The state of the extension: always active.
  open var applicationState: WKApplicationState { .active }
  /// Whether the app is in the dock: never.
  open var isApplicationRunningInDock: Bool { false }
  /// Whether the face stays visible; nothing follows from it.
  open var isFrontmostTimeoutExtended = false

  /// Calls the closure without an error; no refresh follows.
  open func scheduleBackgroundRefresh(
    withPreferredDate date: Date, userInfo: (any NSSecureCoding & NSObjectProtocol)?,
    scheduledCompletion: @escaping @MainActor @Sendable ((any Error)?) -> Void
  ) { scheduledCompletion(nil) }

  /// Calls the closure without an error; no snapshot follows.
  open func scheduleSnapshotRefresh(
    withPreferredDate date: Date, userInfo: (any NSSecureCoding & NSObjectProtocol)?,
    scheduledCompletion: @escaping @MainActor @Sendable ((any Error)?) -> Void
  ) { scheduledCompletion(nil) }

  /// Does nothing.
  open func openSystemURL(_ url: URL) {}
  /// Does nothing.
  open func registerForRemoteNotifications() {}
}

/// The watch's app: here, an object that keeps a delegate and calls it never.
@preconcurrency @MainActor open class WKApplication: NSObject {
  private static let only = WKApplication()

  /// Returns the app of this process.
  open class func shared() -> WKApplication { only }

  /// The object for events, which the program can call itself.
  open weak var delegate: (any WKApplicationDelegate)?
  /// The state of the app: always active.
  open var applicationState: WKApplicationState { .active }
  /// Whether the app is in the dock: never.
  open var isApplicationRunningInDock: Bool { false }

  /// Calls the closure without an error; no refresh follows.
  open func scheduleBackgroundRefresh(
    withPreferredDate date: Date, userInfo: (any NSSecureCoding & NSObjectProtocol)?,
    scheduledCompletion: @escaping @MainActor @Sendable ((any Error)?) -> Void
  ) { scheduledCompletion(nil) }

  /// Calls the closure without an error; no snapshot follows.
  open func scheduleSnapshotRefresh(
    withPreferredDate date: Date, userInfo: (any NSSecureCoding & NSObjectProtocol)?,
    scheduledCompletion: @escaping @MainActor @Sendable ((any Error)?) -> Void
  ) { scheduledCompletion(nil) }

  /// Does nothing.
  open func openSystemURL(_ url: URL) {}
  /// Does nothing.
  open func registerForRemoteNotifications() {}
}

/// The methods of a delegate that connectivity code implements; each has a default that does
/// nothing, except that background tasks are completed.
@preconcurrency @MainActor public protocol WKExtensionDelegate: NSObjectProtocol {
  /// The app has been launched.
  func applicationDidFinishLaunching()
  /// The app receives events.
  func applicationDidBecomeActive()
  /// The app will receive no more events.
  func applicationWillResignActive()
  /// The app will be in the foreground.
  func applicationWillEnterForeground()
  /// The app is in the background.
  func applicationDidEnterBackground()
  /// The app was woken for background tasks, which it must complete.
  func handle(_ backgroundTasks: Set<WKRefreshBackgroundTask>)
}

/// The methods of a delegate that connectivity code implements; each has a default that does
/// nothing, except that background tasks are completed.
@preconcurrency @MainActor public protocol WKApplicationDelegate: NSObjectProtocol {
  /// The app has been launched.
  func applicationDidFinishLaunching()
  /// The app receives events.
  func applicationDidBecomeActive()
  /// The app will receive no more events.
  func applicationWillResignActive()
  /// The app will be in the foreground.
  func applicationWillEnterForeground()
  /// The app is in the background.
  func applicationDidEnterBackground()
  /// The app was woken for background tasks, which it must complete.
  func handle(_ backgroundTasks: Set<WKRefreshBackgroundTask>)
}

extension WKExtensionDelegate {
  /// Does nothing.
  public func applicationDidFinishLaunching() {}
  /// Does nothing.
  public func applicationDidBecomeActive() {}
  /// Does nothing.
  public func applicationWillResignActive() {}
  /// Does nothing.
  public func applicationWillEnterForeground() {}
  /// Does nothing.
  public func applicationDidEnterBackground() {}
  /// Completes the tasks.
  public func handle(_ backgroundTasks: Set<WKRefreshBackgroundTask>) {
    for task in backgroundTasks { task.setTaskCompletedWithSnapshot(false) }
  }
}

extension WKApplicationDelegate {
  /// Does nothing.
  public func applicationDidFinishLaunching() {}
  /// Does nothing.
  public func applicationDidBecomeActive() {}
  /// Does nothing.
  public func applicationWillResignActive() {}
  /// Does nothing.
  public func applicationWillEnterForeground() {}
  /// Does nothing.
  public func applicationDidEnterBackground() {}
  /// Completes the tasks.
  public func handle(_ backgroundTasks: Set<WKRefreshBackgroundTask>) {
    for task in backgroundTasks { task.setTaskCompletedWithSnapshot(false) }
  }
}
