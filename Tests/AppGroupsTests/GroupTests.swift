import AppGroups
import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// Operations of a group's programs together, as two processes.
@Suite struct GroupTests {
  private let group: String
  private let root: String

  init() throws {
    root = try GroupsRoot.use()
    group = "group.test.\(UUID().uuidString)"
  }

  private func start(_ arguments: String...) throws -> Running {
    try Running(Programs.built("DropInPeer"), arguments, environment: [GroupsRoot.setting])
  }

  @Test(.blocking) func aGroupHasOneDirectory() throws {
    let url = try #require(
      FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group))
    #expect(url.path == "\(root)/\(group)")
    #expect(
      FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group) == url)
    #expect(FileManager.default.fileExists(atPath: url.path))
  }

  /// A path that is relative to the URL of a file lies beside the file, and not below it.
  @Test(.blocking) func theURLOfAGroupIsTheURLOfADirectory() throws {
    let url = try #require(
      FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group))
    #expect(url.hasDirectoryPath)
    #expect(url.absoluteString.hasSuffix("/\(group)/"))
    let file = URL(fileURLWithPath: "seats.txt", isDirectory: false, relativeTo: url)
    #expect(file.absoluteURL.path == "\(root)/\(group)/seats.txt")
  }

  @Test(.blocking) func aNotificationTellsOfAFileThatIsThere() throws {
    let heard = Heard<String>()
    let url = try #require(
      FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)
    ).appendingPathComponent("data.txt")
    let observation = try DarwinNotification("\(group).changed").observe(on: .global()) {
      heard.add((try? String(contentsOf: url, encoding: .utf8)) ?? "nothing")
    }
    let peer = try start("file-then-post", group)
    #expect(try peer.outcome().status == .exited(0))
    try heard.wait("the notification") { $0 == ["the whole file"] }
    observation.cancel()
    try DarwinNotification("\(group).changed").post()
    let witness = Heard<Int>()
    let other = try DarwinNotification("\(group).other").observe(on: .global()) { witness.add(1) }
    try DarwinNotification("\(group).other").post()
    try witness.wait("the witness") { $0.count == 1 }
    #expect(heard.count == 1)
    other.cancel()
  }

  @Test(.blocking) func coreFoundationsNamesPostObserveAndRemove() throws {
    let center = CFNotificationCenterGetDarwinNotifyCenter()
    let heard = Heard<String>()
    let rest = Heard<Bool>()
    let mark = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
    defer { mark.deallocate() }
    let number = UInt(bitPattern: mark)
    let name = "\(group).cf"
    CFNotificationCenterAddObserver(
      center, mark,
      { center, observer, name, object, info in
        rest.add(UInt(bitPattern: observer) == number && object == nil && info == nil)
        heard.add(name!.rawValue as String)
      }, name as CFString, nil, .deliverImmediately)
    CFNotificationCenterPostNotification(
      center, CFNotificationName(name as CFString), nil, nil, true)
    try heard.wait("one's own post") { $0 == [name] }
    #expect(rest.all == [true], "the observer, and nothing else")
    CFNotificationCenterRemoveObserver(center, mark, CFNotificationName(name as CFString), nil)
    let witness = Heard<Int>()
    let other = try DarwinNotification(name).observe(on: .global()) { witness.add(1) }
    CFNotificationCenterPostNotification(
      center, CFNotificationName(name as CFString), nil, nil, true)
    try witness.wait("the witness") { $0.count == 1 }
    #expect(heard.count == 1)
    other.cancel()
  }

  @Test(.blocking) func removingOneNameLeavesTheObserversOtherNames() throws {
    let center = CFNotificationCenterGetDarwinNotifyCenter()
    let heard = Heard<String>()
    let mark = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
    defer {
      CFNotificationCenterRemoveEveryObserver(center, mark)
      mark.deallocate()
    }
    let names = ["one", "other"].map { "\(group).\($0)" }
    for name in names {
      CFNotificationCenterAddObserver(
        center, mark, { _, _, name, _, _ in heard.add(name!.rawValue as String) },
        name as CFString, nil, .deliverImmediately)
    }
    CFNotificationCenterRemoveObserver(center, mark, CFNotificationName(names[0] as CFString), nil)
    for name in names {
      CFNotificationCenterPostNotification(
        center, CFNotificationName(name as CFString), nil, nil, true)
    }
    try heard.wait("the other") { $0 == [names[1]] }
  }

  /// Ten rounds, because the observer may be notified a little later than the witness.
  @Test(.blocking) func aCancelledObserverReceivesNoWaitingNotification() throws {
    let (heard, witnessed) = (Heard<Int>(), Heard<Int>())
    let queue = DispatchQueue(label: "busy")
    let notification = DarwinNotification("\(group).cancelled")
    let witness = try notification.observe(on: .global()) { witnessed.add(1) }
    for round in 1...10 {
      let observation = try notification.observe(on: queue) { heard.add(round) }
      queue.suspend()
      defer { queue.resume() }
      let before = witnessed.count
      try notification.post()
      try witnessed.wait("the witness") { $0.count > before }
      observation.cancel()
    }
    queue.sync {}
    #expect(heard.all == [])
    witness.cancel()
  }

  @Test(.blocking) func theParentIsStartedAndAnswersOnce() throws {
    let command = try run(
      Programs.built("wormhole"),
      [
        "wake", group, "--group", group, "--register", "--env", try GroupsRoot.setting, "--",
        Programs.built("DropInPeer"), "parent",
        group,
      ], environment: [GroupsRoot.setting])
    #expect(command.status == .exited(0), "\(command.errors)")
    let url = try #require(
      FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group))
    #expect(!FileManager.default.fileExists(atPath: url.appendingPathComponent("f").path))
    ParentApplication.group = group
    let replies = Heard<(String?, Int)>()
    func ask() {
      let isSent = WKInterfaceController.openParentApplication(["file": "f"]) { reply, error in
        if let error { replies.add(("\(error)", 0)) }
        replies.add((reply["made"] as? String, reply["process"] as? Int ?? 0))
      }
      #expect(isSent)
    }
    ask()
    try replies.wait("the reply") { $0.count == 1 }
    #expect(FileManager.default.fileExists(atPath: url.appendingPathComponent("f").path))
    ask()
    try replies.wait("the second reply") { $0.count == 2 }
    try #require(replies.all.allSatisfy { $0.0 == "f" }, "\(replies.all)")
    // The program still runs, and was not started again.
    #expect(replies.all[0].1 == replies.all[1].1)
    try Processes.send(.kill, to: Int32(replies.all[0].1))
  }

  @Test(.blocking) func stoppingEndsAllThatIsServed() throws {
    final class Silent: UIApplicationDelegate {
      func application(
        _ application: UIApplication,
        handleWatchKitExtensionRequest userInfo: [AnyHashable: Any]?,
        reply: @escaping @Sendable ([AnyHashable: Any]?) -> Void
      ) { reply(nil) }
    }
    let groups = [group, group + ".2"]
    try servingTurn.withLock { _ in
      for group in groups { try ParentApplication.serve(Silent(), group: group) }
      for group in groups {
        #expect(throws: WormholeError.self) { try SharedContainer(group: group).join(as: group) }
      }
      ParentApplication.stop()
    }
    for group in groups { try SharedContainer(group: group).join(as: group).leave() }
  }

  @Test(.blocking, .notSanitized("a copy of a process with threads may hang in its code"))
  func aCopyOfTheProcessIsToldThatNothingIsItsOwn() throws {
    let outcome = try start("fork", group).outcome()
    #expect(
      outcome.output
        == "the copy is through\nthe copy ended: 0\nit says: parent\nit says: parent\n",
      "\(outcome.errors)")
    let complaints = outcome.errors.split(separator: "\n")
    #expect(complaints.count >= 4, "\(outcome.errors)")
    for complaint in complaints {
      #expect(complaint.contains("open the container again in the child"), "\(complaint)")
    }
  }

  /// The app does not reply, and the extension has a time limit of a second.
  @Test(.blocking) func anExtensionWaitsNoLongerThanItsTimeLimit() throws {
    let app = try SharedContainer(group: group).join(as: group)
    defer { app.leave() }
    let requests = Heard<Request>()
    let responding = app.respond(toKind: nil) { request in requests.add(request) }
    defer { responding.stop() }
    let peer = try start("ask-parent", group, "1000")
    // By the usual limit of thirty seconds, the extension would still wait, and take the reply.
    try? eventually("the end of the extension", within: .seconds(15)) { peer.hasEnded }
    for request in requests.all { try? request.reply([String: Int]()) }
    let outcome = try peer.outcome()
    #expect(outcome.output == "true timedOut\non the main queue\nfalse\n", "\(outcome.errors)")
  }

  @Test(.blocking) func aParentThatNobodyCanStartIsAnErrorAndWrongQuestionsAreNotSent() throws {
    let outcome = try start("ask-parent", group).outcome()
    #expect(outcome.output == "true notFound\non the main queue\nfalse\n", "\(outcome.errors)")
  }
}
