public import Foundation
internal import WatchConnectivity

/// How well the counterpart can be reached.
public enum Reachability: Hashable, Sendable {
  /// Unreachable: the session is not active, or the counterpart's app is not installed.
  case notReachable
  /// Reachable by guaranteed messages, which the counterpart receives whenever it runs.
  case backgroundOnly
  /// Reachable by all kinds of messages.
  case immediatelyReachable

  /// The same as ``immediatelyReachable``; a `switch` over it needs an additional `default`.
  public static var immediateMessaging: Reachability { .immediatelyReachable }

  init(_ session: WCSession) {
    guard session.activationState == .activated, session.isPaired, session.isWatchAppInstalled
    else {
      self = .notReachable
      return
    }
    self = session.isReachable ? .immediatelyReachable : .backgroundOnly
  }
}

extension Communicator {
  /// The activation state of the session.
  public enum State: Hashable, Sendable {
    /// The session has not been activated.
    case notActivated
    /// The phone is changing to another watch.
    case inactive
    /// The session is in use.
    case activated

    init(_ state: WCSessionActivationState) {
      switch state {
      case .notActivated: self = .notActivated
      case .inactive: self = .inactive
      case .activated: self = .activated
      }
    }
  }
}

/// The phone's information about its watch.
public enum WatchState: Hashable, Sendable {
  /// The state of the watch's app.
  public enum AppState: Hashable, Sendable {
    /// The state of the complication.
    public enum ComplicationState: Hashable, Sendable {
      /// The complication is on the active face; the number of updates left today.
      case enabled(numberOfUpdatesAvailableToday: Int)
      /// The complication is not on the active face.
      case notEnabled
    }

    /// A directory of the phone's for this watch.
    public typealias WatchSpecificLocalURL = URL

    /// The app is installed.
    case installed(ComplicationState, WatchSpecificLocalURL?)
    /// The app is not installed.
    case notInstalled
  }

  /// The phone is paired with a watch.
  case paired(AppState)
  /// The phone is not paired with a watch.
  case notPaired

  init(_ session: WCSession) {
    guard session.isPaired else {
      self = .notPaired
      return
    }
    guard session.isWatchAppInstalled else {
      self = .paired(.notInstalled)
      return
    }
    let complication: AppState.ComplicationState =
      session.isComplicationEnabled
      ? .enabled(
        numberOfUpdatesAvailableToday: session.remainingComplicationUserInfoTransfers)
      : .notEnabled
    self = .paired(.installed(complication, session.watchDirectoryURL))
  }

  /// The state of the watch's app.
  public var appState: AppState {
    if case .paired(let state) = self { state } else { .notInstalled }
  }

  /// The state of the complication.
  public var complicationState: AppState.ComplicationState {
    if case .installed(let state, _) = appState { state } else { .notEnabled }
  }

  /// The number of complication updates left today.
  public var numberOfComplicationUpdatesAvailableToday: Int {
    if case .enabled(let count) = complicationState { count } else { 0 }
  }
}

/// The watch's information about its phone.
public enum PhoneState: Hashable, Sendable {
  /// The state of the phone's app.
  public enum AppState: Hashable, Sendable {
    /// The app is installed.
    case installed
    /// The app is not installed.
    case notInstalled
  }

  /// The watch is paired with a phone.
  case paired(AppState)
  /// No phone is paired with this watch.
  case notPaired

  init(_ session: WCSession) {
    guard session.isPaired else {
      self = .notPaired
      return
    }
    self = .paired(session.isCompanionAppInstalled ? .installed : .notInstalled)
  }
}
