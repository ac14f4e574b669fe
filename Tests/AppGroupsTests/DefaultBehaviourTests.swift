import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeDropIns
import WormholeSyscalls

@testable import AppGroups

/// What holds where a program passes no name, implements no method or sets no property.
@Suite(.blocking) struct DefaultBehaviourTests {
  private let name: String
  private let folder: TemporaryDirectory

  init() throws {
    try GroupsRoot.use()
    name = "test.\(UUID().uuidString)"
    folder = try TemporaryDirectory()
  }

  private func url(_ name: String) -> URL { URL(fileURLWithPath: folder.path + "/" + name) }

  // MARK: Notifications

  @Test func anObserverWithoutANameObservesNothing() throws {
    #expect(CFNotificationName(rawValue: name) == CFNotificationName(name))
    let center = CFNotificationCenterGetDarwinNotifyCenter()
    let mark = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
    defer {
      CFNotificationCenterRemoveEveryObserver(center, mark)
      mark.deallocate()
    }
    let heard = Heard<String>()
    CFNotificationCenterAddObserver(
      center, mark, { _, _, _, _, _ in heard.add("without a name") }, nil, nil,
      .deliverImmediately)
    CFNotificationCenterAddObserver(
      center, mark, { _, _, name, _, _ in heard.add(name?.rawValue ?? "none") }, name, nil,
      .deliverImmediately)
    CFNotificationCenterPostNotification(center, nil, nil, nil, true)
    CFNotificationCenterPostNotification(
      center, CFNotificationName(rawValue: name), nil, nil, true)
    try heard.wait("the post") { !$0.isEmpty }
    #expect(heard.all == [name])
  }

  /// Without a queue the closure is called on the main queue, and the options change nothing.
  @Test func aDistributedPostArrivesOnTheMainQueue() throws {
    typealias Options = DistributedNotificationCenter.Options
    #expect(Options.deliverImmediately.rawValue == 1)
    #expect(Options.postToAllSessions.rawValue == 2)
    let center = DistributedNotificationCenter.default()
    let heard = Heard<String>()
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    defer { DispatchQueue.main.setSpecific(key: key, value: nil) }
    let observer = center.addObserver(
      forName: NSNotification.Name(name), object: nil, queue: nil
    ) { note in
      let number = note.userInfo?["n"] as? Int ?? 0
      let isMain = DispatchQueue.getSpecific(key: key) ?? false
      heard.add("\(note.object ?? "none") \(number) \(isMain)")
    }
    center.postNotificationName(
      NSNotification.Name(name), object: "o", userInfo: ["n": 7],
      options: [.deliverImmediately, .postToAllSessions])
    try heard.wait("the post") { $0 == ["o 7 true"] }
    center.removeObserver(observer)
  }

  /// A caller that only looks at the token must not take it for a registration.
  @Test func aRegistrationThatFailsHasNoToken() {
    var token: Int32 = 17
    #expect(notify_register_check("", &token) == UInt32(NOTIFY_STATUS_FAILED))
    #expect(token == NOTIFY_TOKEN_INVALID)
    token = 17
    let status = notify_register_dispatch("", &token, .global()) { _ in }
    #expect(status == UInt32(NOTIFY_STATUS_FAILED))
    #expect(token == NOTIFY_TOKEN_INVALID)
  }

  // MARK: Files

  /// A presenter that implements a single method.
  private final class Plain: NSObject, NSFilePresenter, Sendable {
    let presentedItemURL: URL?
    let presentedItemOperationQueue = OperationQueue()
    let heard = Heard<String>()

    init(_ url: URL?) { presentedItemURL = url }

    func presentedItemDidChange() { heard.add("changed") }
  }

  @Test func aChangeInAFolderIsAChangeOfTheFolder() throws {
    let plain = Plain(url(""))
    let presenter: any NSFilePresenter = plain
    presenter.presentedSubitemDidChange(at: url("a"))
    #expect(plain.heard.count == 1)
    presenter.presentedSubitemDidAppear(at: url("a"))
    #expect(plain.heard.count == 2)
    presenter.presentedSubitem(at: url("a"), didMoveTo: url("b"))
    #expect(plain.heard.count == 3)
    presenter.presentedItemDidMove(to: url("b"))
    #expect(plain.heard.count == 3)
    let ends = Heard<Bool>()
    presenter.accommodatePresentedSubitemDeletion(at: url("a")) { ends.add($0 == nil) }
    presenter.accommodatePresentedItemDeletion { ends.add($0 == nil) }
    presenter.savePresentedItemChanges { ends.add($0 == nil) }
    #expect(ends.all == [true, true, true])
    NSFileCoordinator.addFilePresenter(plain)
    defer { NSFileCoordinator.removeFilePresenter(plain) }
    var entered = false
    NSFileCoordinator().coordinate(writingItemAt: url("new"), error: nil) { url in
      entered = (try? Data("text".utf8).write(to: url)) != nil
    }
    #expect(entered)
    try plain.heard.wait("the new file") { $0.count > 3 }
  }

  @Test func aPresenterWithoutAFileIsNotAdded() {
    let plain = Plain(nil)
    NSFileCoordinator.addFilePresenter(plain)
    #expect(!NSFileCoordinator.filePresenters.contains { $0 === plain })
  }

  /// A presenter that is added again is presented where it is now, which may be nowhere.
  @Test func aPresenterThatHasLostItsFileIsNoLongerAdded() {
    final class Moving: NSObject, NSFilePresenter, Sendable {
      let url = Monitor<URL?>(nil)
      let presentedItemOperationQueue = OperationQueue()
      var presentedItemURL: URL? { url.withLock { $0 } }
    }
    let moving = Moving()
    moving.url.withLock { $0 = url("a") }
    NSFileCoordinator.addFilePresenter(moving)
    #expect(NSFileCoordinator.filePresenters.contains { $0 === moving })
    moving.url.withLock { $0 = nil }
    NSFileCoordinator.addFilePresenter(moving)
    #expect(!NSFileCoordinator.filePresenters.contains { $0 === moving })
  }

  @Test func theTimeLimitContainsTheTimeOfATakeover() {
    let coordinator = NSFileCoordinator()
    #expect(coordinator.takeOverAfter == nil)
    #expect(coordinator.timeout == .seconds(30))
    coordinator.takeOverAfter = .seconds(12)
    #expect(coordinator.takeOverAfter == .seconds(12))
    #expect(coordinator.timeout == .seconds(42))
    coordinator.timeout = .seconds(5)
    #expect(coordinator.timeout == .seconds(5))
  }

  /// The copy is started, and the disk is full: nothing of it may stay.
  @Test func aCopyForUploadingThatFailsLeavesNothing() throws {
    let file = UUID().uuidString
    try folder.write("text", to: file)
    let rules = [
      FaultRule(.clone, persistent: true, .fail(.notSupported)),
      FaultRule(.pwrite, path: "wormhole-upload-", persistent: true, .fail(.noSpace)),
    ]
    var error: NSError?
    var entered = false
    FaultPoints.with(rules) {
      NSFileCoordinator().coordinate(
        readingItemAt: url(file), options: .forUploading, error: &error
      ) { _ in entered = true }
    }
    #expect(!entered)
    #expect(error?.domain == NSCocoaErrorDomain)
    #expect(error?.code == CocoaError.Code.fileWriteOutOfSpace.rawValue)
    let path = error?.userInfo[NSFilePathErrorKey] as? String ?? ""
    #expect(path.hasSuffix("/\(file)"))
    let temporary = FileManager.default.temporaryDirectory.path
    let left = try FileManager.default.contentsOfDirectory(atPath: temporary).filter {
      FileManager.default.fileExists(atPath: "\(temporary)/\($0)/\(file)")
        && $0.hasPrefix("wormhole-upload-")
    }
    #expect(left == [])
  }

  /// As when `TMPDIR` names a directory that was removed.
  @Test func aCopyForUploadingNamesTheDirectoryThatCannotBeMade() throws {
    let file = UUID().uuidString
    try folder.write("text", to: file)
    let rule = FaultRule(.mkdir, path: "wormhole-upload-", .fail(.noSuchFile))
    var error: NSError?
    FaultPoints.with([rule]) {
      NSFileCoordinator().coordinate(
        readingItemAt: url(file), options: .forUploading, error: &error
      ) { _ in }
    }
    #expect(error?.domain == NSCocoaErrorDomain)
    let path = error?.userInfo[NSFilePathErrorKey] as? String ?? ""
    #expect(path.contains("/wormhole-upload-") && !path.contains(file))
  }

  @Test func theOnlyVersionOfAFileReplacesNothing() throws {
    try folder.write("text", to: "a")
    try folder.write("other", to: "b")
    let version = try #require(NSFileVersion.currentVersionOfItem(at: url("a")))
    #expect(try version.replaceItem(at: url("b"), options: .byMoving) == url("b"))
    #expect(try folder.read("a") == "text")
    #expect(try folder.read("b") == "other")
    #expect(NSFileVersion.AddingOptions.byMoving.rawValue == 1)
    #expect(NSFileVersion.ReplacingOptions.byMoving.rawValue == 1)
    let heard = Heard<String>()
    NSFileVersion.getNonlocalVersionsOfItem(at: url("a")) { versions, error in
      heard.add("\(versions?.count ?? -1) \(error == nil)")
    }
    #expect(heard.all == ["0 true"])
    #expect(NSFileVersion.version(itemAt: url("a"), forPersistentIdentifier: 1) == nil)
    #expect(version.localizedNameOfSavingComputer == nil)
    version.isResolved = false
    #expect(version.isResolved)
    #expect(!version.isDiscardable)
  }

  // MARK: Values

  @Test func noSettingOfAGroupIsForced() throws {
    let group = "group.\(name)"
    let defaults = try #require(UserDefaults(suiteName: group))
    defaults.set(1, forKey: "k")
    #expect(!defaults.objectIsForced(forKey: "k"))
    #expect(!defaults.objectIsForced(forKey: "k", inDomain: group))
  }

  @Test func aNumberBecomesACGFloat() {
    let large = NSNumber(value: Int64.max)
    var forced: CGFloat?
    CGFloat._forceBridgeFromObjectiveC(large, result: &forced)
    #expect(forced == 0x1p63)
    #expect(CGFloat._unconditionallyBridgeFromObjectiveC(NSNumber(value: 2.5)) == 2.5)
    #expect(CGFloat._unconditionallyBridgeFromObjectiveC(nil) == 0)
  }

  private final class Model: ObservableObject {
    @Published var text: String

    init(_ text: String) { _text = Published(initialValue: text) }
  }

  @Test func aPublishedPropertyHasItsInitialValue() {
    let model = Model("first")
    var heard: [String] = []
    let observing = model.$text.sink { heard.append($0) }
    model.text = "second"
    #expect(heard == ["first", "second"])
    // Equal are only references to the same object.
    let (again, other) = (observing, AnyCancellable {})
    #expect(observing == again)
    #expect(observing != other)
    observing.cancel()
    model.text = "third"
    #expect(heard == ["first", "second"])
  }
}
