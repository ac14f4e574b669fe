public import Foundation
internal import WatchConnectivity

/// How well the counterpart can be reached.
public enum Reachability: Hashable, Sendable {
  /// Not at all: the session is not active, or the counterpart's app is not installed.
  case notReachable
  /// By what is guaranteed, whenever it runs.
  case backgroundOnly
  /// By everything.
  case immediatelyReachable

  /// The same as ``immediatelyReachable``; in a `switch` it needs a `default` beside it.
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
  /// How far the session is.
  public enum State: Hashable, Sendable {
    /// It has not been activated.
    case notActivated
    /// The phone is changing to another watch.
    case inactive
    /// It is in use.
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

/// What the phone knows of its watch.
public enum WatchState: Hashable, Sendable {
  /// What is known of the watch's app.
  public enum AppState: Hashable, Sendable {
    /// What is known of the complication.
    public enum ComplicationState: Hashable, Sendable {
      /// It is on the active face; so many updates are left today.
      case enabled(numberOfUpdatesAvailableToday: Int)
      /// It is not.
      case notEnabled
    }

    /// A directory of the phone's for this watch.
    public typealias WatchSpecificLocalURL = URL

    /// The app is there.
    case installed(ComplicationState, WatchSpecificLocalURL?)
    /// It is not.
    case notInstalled
  }

  /// There is a watch.
  case paired(AppState)
  /// There is none.
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

  /// What is known of the watch's app.
  public var appState: AppState {
    if case .paired(let state) = self { state } else { .notInstalled }
  }

  /// What is known of the complication.
  public var complicationState: AppState.ComplicationState {
    if case .installed(let state, _) = appState { state } else { .notEnabled }
  }

  /// How many updates of the complication are left today.
  public var numberOfComplicationUpdatesAvailableToday: Int {
    if case .enabled(let count) = complicationState { count } else { 0 }
  }
}

/// What the watch knows of its phone.
public enum PhoneState: Hashable, Sendable {
  /// What is known of the phone's app.
  public enum AppState: Hashable, Sendable {
    /// It is there.
    case installed
    /// It is not.
    case notInstalled
  }

  /// There is a phone.
  case paired(AppState)
  /// There is none that knows this watch.
  case notPaired

  init(_ session: WCSession) {
    guard session.isPaired else {
      self = .notPaired
      return
    }
    self = .paired(session.isCompanionAppInstalled ? .installed : .notInstalled)
  }
}
