extension TwoSides {
  /// Code in the form of many apps: a singleton that is its session's delegate, and a store.
  static let sample: [File] = [
    ("Shared/TicketLink.swift", link), ("Shared/TicketStore.swift", store),
  ]

  private static let link = """
    import Foundation
    import WatchConnectivity

    /// The link between the two apps.
    final class TicketLink: NSObject, WCSessionDelegate {
      static let shared = TicketLink()

      func start() {
        guard WCSession.isSupported() else { return }
        WCSession.default.delegate = self
        WCSession.default.activate()
      }

      func session(
        _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
        error: Error?
      ) {
        if let error { print("not activated: \\(error.localizedDescription)") }
      }

      #if os(iOS) || PHONE
        func sell(_ title: String) {
          WCSession.default.transferUserInfo(["title": title])
        }

        func session(
          _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer, error: Error?
        ) {
          print("delivered \\(userInfoTransfer.userInfo["title"] ?? "nothing")")
        }

        func sessionDidBecomeInactive(_ session: WCSession) {}
        func sessionDidDeactivate(_ session: WCSession) { session.activate() }
      #endif

      #if os(watchOS) || WATCH
        func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
          guard let title = userInfo["title"] as? String else { return }
          DispatchQueue.main.async { TicketStore.shared.add(title) }
        }
      #endif
    }

    """

  private static let store = """
    import Foundation

    /// The tickets, for the screens of the app.
    final class TicketStore: ObservableObject {
      static let shared = TicketStore()

      @Published private(set) var titles: [String] = []

      func add(_ title: String) { titles.append(title) }
    }

    """

  /// The tests of a build server, as a workflow of GitHub Actions.
  static let workflow = """
    # GitHub runs this file if it is in the repository's .github/workflows.
    name: two sides
    on: [push, pull_request]
    defaults:
      run:
        # The directory of this package in the repository.
        working-directory: .
    jobs:
      test:
        runs-on: ubuntu-latest
        container: swift:6.3
        timeout-minutes: 30
        steps:
          - uses: actions/checkout@v4
          - run: swift test

    """
}
