import Combine
import Foundation
import TestSupport
import TestTraits
import Testing
import WatchConnectivity
import WatchKit

/// Code as apps have it, with the shims beside a drop-in module, compiled in Swift 5 mode.
@Suite struct LinkTests {
  private let link = PhoneLink()

  @Test(.blocking) func whatArrivesIsPublishedAndSearched() throws {
    for title in ["Run", "Run", "Swim"] {
      link.session(.default, didReceiveUserInfo: ["workout": title])
    }
    link.received.send(["other": 1])
    #expect(link.workouts.map(\.title) == ["Run", "Swim"])
    try eventually("all workouts without a search") { link.results.count == 2 }
    link.searchText = "Sw"
    try eventually("the search") { link.results.map(\.title) == ["Swim"] }
    NotificationCenter.default.post(
      name: .workoutsChanged, object: link, userInfo: ["title": "Swing"])
    try eventually("the notification") { link.results.map(\.title) == ["Swim", "Swing"] }
    #expect(link.summary == "0 false 3")
    link.session(.default, activationDidCompleteWith: .activated, error: nil)
    #expect(link.summary == "2 false 3")
    link.stop()
    link.activation.send(.inactive)
    #expect(link.summary == "2 false 3")
  }

  @Test(.blocking) func aFailureEndsAPublisher() {
    var heard: [String] = []
    let early = link.firstProgress().sink(
      receiveCompletion: { heard.append("\($0)") }, receiveValue: { heard.append("\($0)") })
    #expect(heard == ["failure(\(PhoneLink.LinkError.self).unreachable)"] || heard.count == 1)
    link.activation.value = .activated
    heard = []
    let late = link.firstProgress().sink(
      receiveCompletion: { heard.append("\($0)") }, receiveValue: { heard.append("\($0)") })
    for value in [0, 3, 4] { link.progress.send(value) }
    link.progress.send(completion: .failure(.refused("late")))
    #expect(heard == ["3", "finished"])
    _ = (early, late)
  }

  @Test(.blocking) func aReplyIsAPublisher() {
    var heard: [String] = []
    var kept: [AnyCancellable] = []
    link.ask { $0(.success("yes")) }.sink { heard.append($0) }.store(in: &kept)
    link.ask { $0(.failure(.refused("no"))) }.sink { heard.append($0) }.store(in: &kept)
    #expect(heard == ["YES", "failed: refused(\"no\")"])
  }

  @MainActor @Test func backgroundTasksAreCompleted() async {
    let delegate = ExtensionDelegate()
    WKExtension.shared().delegate = delegate
    #expect(WKExtension.shared().delegate === delegate)
    #expect(WKExtension.shared().applicationState == .active)
    let kept = WKWatchConnectivityRefreshBackgroundTask()
    let other = WKApplicationRefreshBackgroundTask()
    delegate.handle([kept, other])
    #expect(!kept.isCompleted && other.isCompleted)
    delegate.link.session(.default, didReceiveUserInfo: [:])
    #expect(kept.isCompleted)
    let plain = PlainDelegate()
    WKApplication.shared().delegate = plain
    plain.applicationDidBecomeActive()
    plain.applicationDidEnterBackground()
    #expect(plain.isActive)
    let task = WKSnapshotRefreshBackgroundTask()
    plain.handle([task])
    #expect(task.isCompleted)
    WKApplication.shared().scheduleBackgroundRefresh(
      withPreferredDate: Date(), userInfo: nil
    ) { error in #expect(error == nil) }
    let transfers = WKURLSessionRefreshBackgroundTask()
    transfers.expirationHandler = { Issue.record("it was completed in time") }
    transfers.setTaskCompleted()
    #expect(transfers.isCompleted && transfers.expirationHandler == nil)
    WKExtension.shared().scheduleSnapshotRefresh(
      withPreferredDate: Date(), userInfo: nil
    ) { error in #expect(error == nil) }
    let device = WKInterfaceDevice.current()
    #expect(!device.name.isEmpty && device.screenBounds.width > 0)
    device.play(.notification)
  }
}
