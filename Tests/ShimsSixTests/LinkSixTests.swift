import Combine
import Foundation
import TestSupport
import TestTraits
import Testing
import WatchConnectivity
import WatchKit
import os

/// Code as apps have it, with the shims beside a drop-in module, compiled in Swift 6 mode.
@Suite struct LinkSixTests {
  @MainActor final class Model: ObservableObject {
    @Published private(set) var titles: [String] = []
    @Published private(set) var latest: String?
    private let logger = Logger(subsystem: "com.example.workouts", category: "model")
    private var cancellables: Set<AnyCancellable> = []

    init(_ received: PassthroughSubject<[String: Any], Never>) {
      let texts = received.compactMap { $0["workout"] as? String }
      texts
        .receive(on: DispatchQueue.main)
        .sink { [weak self] in self?.take($0) }
        .store(in: &cancellables)
      texts.map { Optional($0) }.receive(on: OperationQueue.main).assign(to: &$latest)
    }

    private func take(_ title: String) {
      logger.notice("received \(title, privacy: .public)")
      titles.append(title)
    }
  }

  @MainActor @Test func aModelOfTheMainActorFollowsALink() async throws {
    let link = PhoneLink()
    let model = Model(link.received)
    var changes = 0
    let observing = model.objectWillChange.sink { changes += 1 }
    link.session(.default, didReceiveUserInfo: ["workout": "Run"])
    await withCheckedContinuation { continuation in
      DispatchQueue.main.async { continuation.resume() }
    }
    while model.latest == nil { await Task.yield() }
    #expect(model.titles == ["Run"])
    #expect(model.latest == "Run")
    #expect(changes == 2)
    observing.cancel()
  }

  @Test(.blocking) func theLinkWorksAsInSwiftFiveMode() throws {
    let link = PhoneLink()
    for title in ["Run", "Swim"] {
      link.session(.default, didReceiveUserInfo: ["workout": title])
    }
    link.searchText = "Run"
    try eventually("the search") { link.results.map(\.title) == ["Run"] }
    let task = WKWatchConnectivityRefreshBackgroundTask()
    link.keep(task)
    link.completeTasks()
    #expect(task.isCompleted)
    let lock = OSAllocatedUnfairLock(initialState: [String]())
    lock.withLock { $0.append("a") }
    #expect(lock.withLock { $0 } == ["a"])
  }
}
