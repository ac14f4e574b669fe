import AppGroups
import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// The functions of `notify.h`, distributed notifications, and versions of files.
@Suite(.blocking) struct SystemNotificationTests {
  private let name: String

  init() throws {
    try GroupsRoot.use()
    name = "test.\(UUID().uuidString)"
  }

  private func start(_ arguments: String...) throws -> Running {
    try Running(
      Programs.built("DropInPeer"), arguments, environment: [try GroupsRoot.setting])
  }

  @Test func aNotificationCrossesToAnotherProcess() throws {
    let heard = Heard<Int32>()
    var token = NOTIFY_TOKEN_INVALID
    let status = notify_register_dispatch(name, &token, .global()) { heard.add($0) }
    #expect(status == NOTIFY_STATUS_OK)
    #expect(notify_is_valid_token(token))
    #expect(try start("notify", name).outcome().status == .exited(0))
    try heard.wait("the post") { $0 == [token] }
    #expect(notify_cancel(token) == NOTIFY_STATUS_OK)
    #expect(notify_cancel(token) == NOTIFY_STATUS_INVALID_TOKEN)
    #expect(!notify_is_valid_token(token))
    let witness = Heard<Int32>()
    var other = NOTIFY_TOKEN_INVALID
    notify_register_dispatch(name, &other, .global()) { witness.add($0) }
    #expect(notify_post(name) == NOTIFY_STATUS_OK)
    try witness.wait("the witness") { $0.count == 1 }
    #expect(heard.count == 1)
    notify_cancel(other)
  }

  @Test func aCancelledTokenReceivesNoWaitingCall() throws {
    let (heard, witness) = (Heard<Int32>(), Heard<Int32>())
    let queue = DispatchQueue(label: "busy")
    var (token, other) = (NOTIFY_TOKEN_INVALID, NOTIFY_TOKEN_INVALID)
    notify_register_dispatch(name, &token, queue) { heard.add($0) }
    notify_register_dispatch(name, &other, .global()) { witness.add($0) }
    queue.suspend()
    notify_post(name)
    try witness.wait("the witness") { $0.count == 1 }
    notify_cancel(token)
    queue.resume()
    queue.sync {}
    #expect(heard.all == [])
    notify_cancel(other)
  }

  @Test func aCheckReportsPosts() throws {
    var (token, isPosted): (Int32, Int32) = (NOTIFY_TOKEN_INVALID, 0)
    #expect(notify_register_check(name, &token) == NOTIFY_STATUS_OK)
    notify_check(token, &isPosted)
    #expect(isPosted == 1, "the first call")
    notify_check(token, &isPosted)
    #expect(isPosted == 0)
    notify_post(name)
    try eventually("the post") {
      notify_check(token, &isPosted)
      return isPosted == 1
    }
    notify_cancel(token)
    #expect(notify_check(token, &isPosted) == NOTIFY_STATUS_INVALID_TOKEN)
    #expect(notify_post(nil) == NOTIFY_STATUS_INVALID_NAME)
  }

  @Test func distributedNotificationsCrossWithTheirContent() throws {
    let center = DistributedNotificationCenter.default()
    let (heard, even) = (Heard<String>(), Heard<Int>())
    center.post(name: NSNotification.Name(name), object: "before")
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    let all = center.addObserver(
      forName: NSNotification.Name(name), object: nil, queue: queue
    ) { note in
      let texts = note.userInfo?["texts"] as? [String] ?? []
      heard.add("\(note.userInfo?["number"] as? Int ?? 0) \(note.object ?? "none") \(texts)")
    }
    let some = center.addObserver(
      forName: NSNotification.Name(name), object: "even", queue: queue
    ) { even.add($0.userInfo?["number"] as? Int ?? 0) }
    #expect(try start("post-distributed", name, "30").outcome().status == .exited(0))
    try heard.wait("all posts") { $0.count == 30 }
    try even.wait("half of the posts") { $0.count == 15 }
    #expect(heard.all[0] == "1 odd [\"a\", \"b\"]")
    #expect(heard.all.map { $0.prefix { $0 != " " } } == (1...30).map { "\($0)"[...] })
    #expect(even.all == (1...15).map { $0 * 2 })
    center.removeObserver(all)
    center.postNotificationName(
      NSNotification.Name(name), object: "even", userInfo: ["number": 32])
    try even.wait("the last post") { $0.last == 32 }
    #expect(heard.count == 30)
    center.removeObserver(some)
  }

  /// As when an observer is removed on the main queue, while a post waits for the main queue.
  @Test func aRemovedObserverReceivesNoWaitingPost() throws {
    let center = DistributedNotificationCenter.default()
    let (heard, witness, queue) = (Heard<Int>(), Heard<Int>(), OperationQueue())
    queue.isSuspended = true
    let removed = center.addObserver(
      forName: NSNotification.Name(name), object: nil, queue: queue
    ) { _ in heard.add(1) }
    let other = center.addObserver(
      forName: NSNotification.Name(name), object: nil, queue: OperationQueue()
    ) { _ in witness.add(1) }
    center.post(name: NSNotification.Name(name), object: nil)
    try witness.wait("the witness") { $0 == [1] }
    #expect(queue.operationCount == 1)
    center.removeObserver(removed)
    queue.isSuspended = false
    queue.waitUntilAllOperationsAreFinished()
    #expect(heard.all == [])
    center.removeObserver(other)
  }

  /// A center that no other test makes observe, and that lasts as long as the process.
  private static let ownCenter = DistributedNotificationCenter()

  /// The caller receives no error, and does not register again.
  @Test func anObservationThatTheSystemRefusesIsRetried() throws {
    let (center, heard) = (Self.ownCenter, Heard<Int>())
    var observers: [any NSObjectProtocol] = []
    let rule = FaultRule(nil, persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) {
      observers.append(
        center.addObserver(
          forName: NSNotification.Name(name), object: nil, queue: OperationQueue()
        ) { heard.add($0.userInfo?["number"] as? Int ?? 0) })
    }
    center.post(name: NSNotification.Name(name), object: nil, userInfo: ["number": 1])
    try heard.wait("the post") { $0 == [1] }
    for observer in observers { center.removeObserver(observer) }
  }

  /// The caller receives no error, and does not register again.
  @Test func aDarwinObservationThatTheSystemRefusesIsRetried() throws {
    let center = CFNotificationCenterGetDarwinNotifyCenter()
    let mark = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
    defer {
      CFNotificationCenterRemoveEveryObserver(center, mark)
      mark.deallocate()
    }
    let heard = Heard<String>()
    let rule = FaultRule(nil, persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) {
      CFNotificationCenterAddObserver(
        center, mark, { _, _, name, _, _ in heard.add(name?.rawValue ?? "none") }, name, nil,
        .deliverImmediately)
    }
    // A post before the observer watches is not stored.
    try eventually("a post arrives") {
      CFNotificationCenterPostNotification(
        center, CFNotificationName(rawValue: name), nil, nil, true)
      return !heard.all.isEmpty
    }
    #expect(heard.all.first == name)
  }

  /// Another thread removes the observer before its watch has begun.
  ///
  /// Ten posts, because the observer may be notified a little later than the witness.
  @Test func anObserverThatIsRemovedWhileItIsAddedReceivesNothing() throws {
    let mark = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
    defer { mark.deallocate() }
    let (heard, witness, pause) = (Heard<Int>(), Heard<Int>(), FaultPause())
    let (number, name) = (UInt(bitPattern: mark), name)
    let adding = try WormholeSyscalls.Thread("adding") {
      // The time of the latest post is read at the beginning of the watch.
      FaultPoints.with([FaultRule(.fstatat, path: "notices/", .pause(pause))]) {
        CFNotificationCenterAddObserver(
          CFNotificationCenterGetDarwinNotifyCenter(), UnsafeRawPointer(bitPattern: number),
          { _, _, _, _, _ in heard.add(1) }, name, nil, .deliverImmediately)
      }
    }
    try eventually("the watch is about to begin") { pause.isReached }
    CFNotificationCenterRemoveEveryObserver(CFNotificationCenterGetDarwinNotifyCenter(), mark)
    pause.open()
    adding.join()
    let other = try DarwinNotification(name).observe { witness.add(1) }
    for count in 1...10 {
      notify_post(name)
      try witness.wait("the witness") { $0.count >= count }
    }
    #expect(heard.all == [])
    other.cancel()
  }

  /// As `ownCenter`: its first observer learns the last post before the registration.
  private static let lateCenter = DistributedNotificationCenter()

  @Test func anObserverWhoseRegistrationReadsNothingReceivesNoEarlierPost() throws {
    let (center, heard) = (Self.lateCenter, Heard<Int>())
    center.post(name: NSNotification.Name(name), object: nil, userInfo: ["number": 1])
    var observers: [any NSObjectProtocol] = []
    let rule = FaultRule(nil, persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) {
      observers.append(
        center.addObserver(
          forName: NSNotification.Name(name), object: nil, queue: OperationQueue()
        ) { heard.add($0.userInfo?["number"] as? Int ?? 0) })
    }
    for number in 2...3 {
      center.post(name: NSNotification.Name(name), object: nil, userInfo: ["number": number])
      try heard.wait("the post") { $0.contains(number) }
    }
    #expect(heard.all == [2, 3])
    for observer in observers { center.removeObserver(observer) }
  }

  /// The next container counts from the beginning, and the observer stays registered.
  @Test func anObserverSurvivesTheUsersContainer() throws {
    let root = try TemporaryDirectory()
    let environment = ["WORMHOLE_ROOT=\(root.path)"]
    func start(_ arguments: String...) throws -> Running {
      try Running(Programs.built("DropInPeer"), arguments, environment: environment)
    }
    let observer = try start("observe-distributed", name)
    try eventually("it observes") { try observer.output == "observing\n" }
    #expect(try start("post-distributed", name, "3").outcome().status == .exited(0))
    let first = "observing\nodd\neven\nodd\n"
    try eventually("the posts") { try observer.output == first }
    for group in try root.descriptor.names() { try removeTree(root.path + "/" + group) }
    #expect(try start("post-distributed", name, "2").outcome().status == .exited(0))
    #expect(throws: Never.self) {
      try eventually("the posts in the next container") {
        try observer.output == first + "odd\neven\n"
      }
    }
    try observer.child.send(.kill)
  }

  /// Another process makes the next container, whose posts the observer must find.
  @Test func aDarwinObserverSurvivesTheUsersContainer() throws {
    let root = try TemporaryDirectory()
    let environment = ["WORMHOLE_ROOT=\(root.path)"]
    func start(_ arguments: String...) throws -> Running {
      try Running(Programs.built("DropInPeer"), arguments, environment: environment)
    }
    let observer = try start("observe", name)
    try eventually("it observes") { try observer.output == "observing\n" }
    #expect(try start("notify", name).outcome().status == .exited(0))
    let first = "observing\nposted\n"
    try eventually("the post") { try observer.output == first }
    for group in try root.descriptor.names() { try removeTree(root.path + "/" + group) }
    // A post before the observer has found the next container is not stored.
    #expect(throws: Never.self) {
      try eventually("a post in the next container") {
        _ = try start("notify", name).outcome()
        return try observer.output.hasPrefix(first + "posted\n")
      }
    }
    try observer.child.send(.kill)
  }

  /// A file has the place of the container, so that no next one can be made for a while.
  @Test func anObserverWaitsForTheNextContainer() throws {
    let root = try TemporaryDirectory()
    let environment = ["WORMHOLE_ROOT=\(root.path)"]
    func start(_ arguments: String...) throws -> Running {
      try Running(Programs.built("DropInPeer"), arguments, environment: environment)
    }
    let group = "wormhole.user"
    let observer = try start("observe-distributed", name)
    try eventually("it observes") { try observer.output == "observing\n" }
    try eventually("a file is in the place") {
      _ = try run("rm", ["-rf", root.path + "/" + group])
      return (try? root.write("", to: group)) != nil
    }
    try eventually("the loss is noticed") { try !observer.errors.isEmpty }
    // Its first attempt, a second later, fails.
    let end = Instant.now + .seconds(2)
    try eventually("a while passes") { Instant.now > end }
    #expect(try run("rm", [root.path + "/" + group]).status == .exited(0))
    #expect(try start("post-distributed", name, "2").outcome().status == .exited(0))
    #expect(throws: Never.self) {
      try eventually("the posts in the next container") {
        try observer.output == "observing\nodd\neven\n"
      }
    }
    try observer.child.send(.kill)
  }

  /// P9: any program may have written a number after which there is none.
  @Test func afterTheLastNumberThePostsBeginAnew() throws {
    let root = try TemporaryDirectory()
    func start(_ arguments: String...) throws -> Running {
      try Running(
        Programs.built("DropInPeer"), arguments,
        environment: ["WORMHOLE_ROOT=\(root.path)", "SWIFT_BACKTRACE=enable=no"])
    }
    let observer = try start("observe-distributed", name)
    try eventually("it observes") { try observer.output == "observing\n" }
    // More than come later: an observer that does not see the last number knows the beginning by
    // the lower number.
    #expect(try start("post-distributed", name, "3").outcome().status == .exited(0))
    let first = "observing\nodd\neven\nodd\n"
    try eventually("the posts before") { try observer.output == first }
    var options = Options()
    options.createsIfMissing = false
    let path = [root.path, "wormhole.user", ".wormhole"].joined(separator: "/")
    let container = try SharedContainer(directory: path, options: options)
    struct Posts: Codable, Sendable {
      var last = Int.max
      var posts: [Int] = []
    }
    try container.channel("distributed notifications", of: Posts.self).put(Posts())
    #expect(try start("post-distributed", name, "2").outcome().status == .exited(0))
    try eventually("the posts") { try observer.output == first + "odd\neven\n" }
    try observer.child.send(.kill)
  }

  /// The channel stores the latest hundred posts of the last minute, whatever is posted.
  @Test func onlyTheLatestPostsAreStored() throws {
    let root = try TemporaryDirectory()
    func post(_ count: Int) throws {
      let outcome = try run(
        Programs.built("DropInPeer"), ["post-distributed", name, "\(count)"],
        environment: ["WORMHOLE_ROOT=\(root.path)"])
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
    }
    struct Post: Codable, Sendable {
      var number: Int
      var time: Double
      var name: String
    }
    struct Posts: Codable, Sendable {
      var last: Int
      var posts: [Post]
    }
    try post(105)
    var options = Options()
    options.createsIfMissing = false
    let path = [root.path, "wormhole.user", ".wormhole"].joined(separator: "/")
    let container = try SharedContainer(directory: path, options: options)
    let channel = container.channel("distributed notifications", of: Posts.self)
    var stored = try #require(try channel.value)
    #expect(stored.last == 105)
    #expect(stored.posts.map(\.number) == Array(6...105))
    // As if they had been posted more than a minute earlier.
    for index in stored.posts.indices { stored.posts[index].time -= 61 }
    try channel.put(stored)
    try post(1)
    #expect(try channel.value?.posts.map(\.number) == [106])
  }

  /// The channel keeps a bounded number of posts, whatever is posted.
  @Test func contentThatCannotBeSentIsRefused() throws {
    let center = DistributedNotificationCenter.default()
    let heard = Heard<Int>()
    let observer = center.addObserver(
      forName: NSNotification.Name(name), object: nil, queue: OperationQueue()
    ) { heard.add($0.userInfo?["number"] as? Int ?? 0) }
    center.post(name: NSNotification.Name(name), object: nil, userInfo: ["null": NSNull()])
    // Receivers would find the value under a key that the sender did not give.
    center.post(name: NSNotification.Name(name), object: nil, userInfo: [1: "one"])
    center.post(name: NSNotification.Name(name), object: nil, userInfo: ["number": 1])
    try heard.wait("the second") { $0 == [1] }
    center.removeObserver(observer)
  }

  @Test func aFileHasItsPresentVersionOnly() throws {
    let folder = try TemporaryDirectory()
    let url = URL(fileURLWithPath: folder.path + "/note.txt")
    #expect(NSFileVersion.currentVersionOfItem(at: url) == nil)
    try folder.write("text", to: "note.txt")
    let version = try #require(NSFileVersion.currentVersionOfItem(at: url))
    #expect(version.url == url && version.localizedName == "note.txt")
    #expect(version.modificationDate.map { abs($0.timeIntervalSinceNow) < 600 } == true)
    #expect(NSFileVersion.unresolvedConflictVersionsOfItem(at: url)?.isEmpty == true)
    #expect(NSFileVersion.otherVersionsOfItem(at: url)?.isEmpty == true)
    try NSFileVersion.removeOtherVersionsOfItem(at: url)
    version.isResolved = true
    #expect(!version.isConflict && version.hasLocalContents)
    #expect(throws: CocoaError.self) { try version.remove() }
    #expect(NSFileVersion.version(itemAt: url, forPersistentIdentifier: "any") == nil)
    #expect(try version.replaceItem(at: url) == url)
    let calls = Heard<Int?>()
    NSFileVersion.getNonlocalVersionsOfItem(at: url) { versions, error in
      #expect(error == nil)
      calls.add(versions?.count)
    }
    #expect(calls.all == [0])
  }
}
