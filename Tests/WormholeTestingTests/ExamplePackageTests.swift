import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeTesting

/// Users' packages that depend on this package, and test their own code with WormholeTesting.
@Suite(.notSanitized("it builds for release"), .serialized) struct ExamplePackageTests {
  /// The packages see public symbols only, so every user can do the same.
  ///
  /// This package is built again for the tests, half a minute's work of two processors. All
  /// packages share the build. The second package and the third are written by the command, the
  /// third around code without an edit, whose files do not import the module but modules that Linux
  /// does not have.
  @Test(.enabled(if: TestRun.hasTime, "WORMHOLE_EXAMPLE=1 lets it run"))
  func testsOfUsersPackagesPass() async throws {
    guard let swift = Programs.installed("swift") else {
      return skip("the packages of users", missing: "swift")
    }
    let home = try TemporaryDirectory(isPlain: true)
    try await test(
      Programs.source + "/Tests/ExamplePackage", by: swift, in: home,
      "Executed 2 tests, with 0 failures", "Test run with 7 tests in 2 suites passed")
    try await write("sample", in: home)
    try await test(
      home.path + "/sample", by: swift, in: home, "Test run with 2 tests in 1 suite passed")
    try home.descriptor.makeDirectory("app", mode: 0o700)
    try home.write(Self.link, to: "app/Link.swift")
    try home.write(Self.screens, to: "app/Screens.swift")
    try await write("own", in: home, "--sources", home.path + "/app")
    try await test(
      home.path + "/own", by: swift, in: home, "Test run with 1 test in 1 suite passed")
  }

  /// Code with one import, of Foundation.
  private static let link = """
    import Foundation

    final class Link: NSObject, WCSessionDelegate, ObservableObject {
      static let shared = Link()
      @Published var isActive = false
      private let screens = Screens()

      override private init() {
        super.init()
        screens.follow(self)
        WCSession.default.delegate = self
      }

      func session(
        _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
        error: Error?
      ) {
        DispatchQueue.main.async { self.isActive = state == .activated }
      }

      #if os(iOS) || PHONE
        func sessionDidBecomeInactive(_ session: WCSession) {}
        func sessionDidDeactivate(_ session: WCSession) {}
      #elseif !os(watchOS) && !WATCH
        let side = neitherSideIsCompiled
      #endif
    }

    """

  /// Code for which the command writes the sources of three modules.
  ///
  /// The session is activated through them, so a side becomes active only if they work.
  private static let screens = """
    import Combine
    import Foundation
    import WatchKit
    import os

    final class Screens: ObservableObject {
      @Published private(set) var title = "not active"
      private let taps = PassthroughSubject<Int, Never>()
      private let count = OSAllocatedUnfairLock(initialState: 0)
      private let logger = Logger(subsystem: "com.example.own", category: "screens")
      private var cancellables = Set<AnyCancellable>()

      func follow(_ link: Link) {
        link.$isActive
          .map { $0 ? "active" : "not active" }
          .receive(on: RunLoop.main)
          .sink { [weak self] in self?.title = $0 }
          .store(in: &cancellables)
        taps
          .debounce(for: .milliseconds(10), scheduler: RunLoop.main)
          .sink { [count, logger] tap in
            let taps = count.withLock { count in
              count += tap
              return count
            }
            logger.info("activates after \\(taps) taps")
            WCSession.default.activate()
          }
          .store(in: &cancellables)
        taps.send(1)
      }
    }

    final class ExtensionDelegate: NSObject, WKExtensionDelegate {
      func handle(_ backgroundTasks: Set<WKRefreshBackgroundTask>) {
        for task in backgroundTasks {
          guard let task = task as? WKWatchConnectivityRefreshBackgroundTask else { continue }
          task.setTaskCompletedWithSnapshot(WCSession.default.hasContentPending)
        }
      }
    }

    """

  private func write(
    _ name: String, in home: TemporaryDirectory, _ options: String...
  ) async throws {
    let command = try TestProcess(
      "wormhole",
      ["new", "two-sides", "\(home.path)/\(name)", "--package", Programs.source] + options,
      in: nil)
    let status = try await command.exitStatus()
    let errors = try command.standardError
    #expect(status == .exited(0), "\(errors)")
  }

  private func test(
    _ package: String, by swift: String, in home: TemporaryDirectory, _ results: String...
  ) async throws {
    let tests = try TestProcess(
      swift,
      [
        "test", "--package-path", package, "--scratch-path", home.path + "/build",
        // The build is not debugged by anyone.
        "-debug-info-format", "none",
      ], in: nil, terminal: false)
    let status = try await tests.exitStatus(within: .seconds(1200))
    let words = try tests.output + tests.standardError
    #expect(status == .exited(0), "\(words)")
    for result in results { #expect(words.contains(result), "\(words)") }
  }
}
