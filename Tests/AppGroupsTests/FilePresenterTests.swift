import AppGroups
import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// `NSFilePresenter`, used as in code that was written for devices.
@Suite(.blocking) struct FilePresenterTests {
  private let folder: TemporaryDirectory

  init() throws {
    try GroupsRoot.use()
    folder = try TemporaryDirectory()
  }

  private func url(_ name: String) -> URL { URL(fileURLWithPath: folder.path + "/" + name) }

  /// Records the requests and notices that it receives.
  private final class Shower: NSObject, NSFilePresenter, Sendable {
    private let place: Monitor<URL>
    let queue = OperationQueue()
    private let heard = Monitor<[String]>([])

    init(_ url: URL) {
      place = Monitor(url)
      queue.maxConcurrentOperationCount = 1
    }

    var all: [String] { heard.withLock { $0 } }
    var presentedItemURL: URL? { place.withLock { $0 } }
    var presentedItemOperationQueue: OperationQueue { queue }

    private func note(_ words: String) {
      let isHere = OperationQueue.current === queue
      heard.withLock { $0.append(isHere ? words : "\(words) elsewhere") }
    }

    func relinquishPresentedItem(
      toReader reader: @escaping @Sendable ((() -> Void)?) -> Void
    ) {
      note("reader")
      reader { self.note("again") }
    }
    func relinquishPresentedItem(
      toWriter writer: @escaping @Sendable ((() -> Void)?) -> Void
    ) {
      note("writer")
      writer { self.note("again") }
    }
    func savePresentedItemChanges(
      completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
      note("save")
      completionHandler(nil)
    }
    func accommodatePresentedItemDeletion(
      completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
      note("delete")
      completionHandler(nil)
    }
    func accommodatePresentedSubitemDeletion(
      at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
      note("delete \(url.path)")
      completionHandler(nil)
    }
    func presentedItemDidMove(to newURL: URL) {
      note("moved to \(newURL.lastPathComponent)")
      place.withLock { $0 = newURL }
    }
    func presentedSubitem(at oldURL: URL, didMoveTo newURL: URL) {
      note("moved \(oldURL.path) to \(newURL.path)")
    }
    func presentedItemDidChange() { note("changed") }
    func presentedSubitemDidChange(at url: URL) { note("changed \(url.lastPathComponent)") }
    func presentedSubitemDidAppear(at url: URL) { note("appeared \(url.path)") }
  }

  /// A presenter with only the required properties.
  private final class Silent: NSObject, NSFilePresenter {
    var presentedItemURL: URL?
    let presentedItemOperationQueue = OperationQueue()
  }

  @Test func presentersAreAskedAndTold() throws {
    let shower = Shower(url("a"))
    NSFileCoordinator.addFilePresenter(shower)
    defer { NSFileCoordinator.removeFilePresenter(shower) }
    #expect(NSFileCoordinator.filePresenters.contains { $0 === shower })
    let coordinator = NSFileCoordinator()
    var entered = 0
    func take() -> [String] {
      entered += 1
      return shower.all
    }
    coordinator.coordinate(readingItemAt: url("a"), error: nil) { _ in
      #expect(take() == ["reader", "save"])
    }
    try eventually("it goes on") { shower.all == ["reader", "save", "again"] }
    coordinator.coordinate(readingItemAt: url("a"), options: .withoutChanges, error: nil) { _ in
      #expect(take().suffix(2) == ["again", "reader"])
    }
    try eventually("it goes on") { shower.all.last == "again" }
    coordinator.coordinate(writingItemAt: url("a"), error: nil) { _ in
      #expect(take().suffix(2) == ["writer", "save"])
    }
    try eventually("it is told") { shower.all.suffix(2) == ["again", "changed"] }
    coordinator.coordinate(writingItemAt: url("a"), options: .forDeleting, error: nil) { _ in
      #expect(take().suffix(2) == ["writer", "delete"])
    }
    try eventually("it is told") { shower.all.suffix(2) == ["again", "changed"] }
    let count = shower.all.count
    coordinator.coordinate(
      writingItemAt: url("a"), options: .contentIndependentMetadataOnly, error: nil
    ) { _ in entered += 1 }
    let own = NSFileCoordinator(filePresenter: shower)
    own.coordinate(writingItemAt: url("a"), error: nil) { _ in entered += 1 }
    own.purposeIdentifier = "purpose \(folder.path)"
    own.coordinate(readingItemAt: url("a"), error: nil) { _ in entered += 1 }
    shower.queue.waitUntilAllOperationsAreFinished()
    #expect(shower.all.count == count)
    #expect(entered == 7)
    #expect(!shower.all.contains { $0.hasSuffix("elsewhere") })
  }

  /// Removes itself in its `deinit`, as presenters on devices do, and has no lock.
  private final class Leaving: NSObject, NSFilePresenter {
    let presentedItemURL: URL?
    let presentedItemOperationQueue = OperationQueue()
    private let heard: Heard<String>
    private let removesItself: Bool

    init(_ url: URL, _ heard: Heard<String>, removesItself: Bool) {
      (presentedItemURL, self.heard, self.removesItself) = (url, heard, removesItself)
      presentedItemOperationQueue.maxConcurrentOperationCount = 1
      super.init()
      NSFileCoordinator.addFilePresenter(self)
    }

    func relinquishPresentedItem(toWriter writer: @escaping ((() -> Void)?) -> Void) {
      heard.add("asked")
      writer { self.heard.add("again") }
    }
    func presentedItemDidChange() { heard.add("changed") }

    deinit {
      if removesItself { NSFileCoordinator.removeFilePresenter(self) }
      heard.add("gone")
    }
  }

  @Test(arguments: [true, false]) func aReleasedPresenterIsAskedNothingMore(
    _ removesItself: Bool
  ) throws {
    // An access waits two seconds for a presenter that does not reply. Only the first access after
    // the release would wait, so each run has a presenter of its own.
    let time = try Bystander.leastOfThree(within: .seconds(1)) {
      try timeAfterRelease(removesItself: removesItself)
    }
    #expect(time < .seconds(1))
    #expect(NSFileCoordinator.filePresenters.allSatisfy { $0.presentedItemURL != url("a") })
  }

  /// The duration of the first access after the release of a presenter.
  private func timeAfterRelease(removesItself: Bool) throws -> Duration {
    let heard = Heard<String>()
    var presenter: Leaving? = Leaving(url("a"), heard, removesItself: removesItself)
    weak let released = presenter
    let coordinator = NSFileCoordinator()
    func write() -> Duration {
      let began = ContinuousClock.now
      var entered = false
      coordinator.coordinate(writingItemAt: url("a"), error: nil) { _ in entered = true }
      #expect(entered)
      return ContinuousClock.now - began
    }
    _ = write()
    try heard.wait("the change") { $0 == ["asked", "again", "changed"] }
    presenter?.presentedItemOperationQueue.waitUntilAllOperationsAreFinished()
    presenter = nil
    // The last call of the presenter may still hold it for a moment.
    try heard.wait("its end") { $0.last == "gone" }
    #expect(released == nil)
    let time = write()
    #expect(heard.all.last == "gone")
    return time
  }

  /// Otherwise each access would ask all presenters that the program has ever released.
  @Test func aReleasedPresenterEndsWhenAnotherIsAdded() throws {
    let manager = FileManager.default
    let group = try #require(
      manager.containerURL(
        forSecurityApplicationGroupIdentifier: "group.released.\(UUID().uuidString)"))
    let presenters = group.appendingPathComponent(".wormhole/system/coordination/presenters").path
    func count() -> Int { (try? manager.contentsOfDirectory(atPath: presenters).count) ?? 0 }
    // Made first: with the address of the released presenter, it would replace that presenter.
    let second = Shower(group.appendingPathComponent("b"))
    let heard = Heard<String>()
    var first: Leaving? = Leaving(
      group.appendingPathComponent("a"), heard, removesItself: false)
    #expect(first != nil && count() == 1)
    first = nil
    // A presenter that is looked at is retained for a moment.
    try heard.wait("its end") { $0 == ["gone"] }
    NSFileCoordinator.addFilePresenter(second)
    #expect(count() == 1)
    NSFileCoordinator.removeFilePresenter(second)
    #expect(count() == 0)
  }

  @Test func aFoldersPresenterIsToldOfWhatIsInIt() throws {
    let shower = Shower(url(""))
    NSFileCoordinator.addFilePresenter(shower)
    let coordinator = NSFileCoordinator()
    coordinator.coordinate(writingItemAt: url("new"), error: nil) { url in
      try? Data("one".utf8).write(to: url)
    }
    try eventually("it appears") { shower.all.last == "appeared \(folder.path)/new" }
    coordinator.coordinate(writingItemAt: url("new"), error: nil) { _ in }
    try eventually("it changes") { shower.all.last == "changed new" }
    var asked: [String] = []
    coordinator.coordinate(writingItemAt: url("new"), options: .forDeleting, error: nil) { _ in
      asked = shower.all.suffix(2)
    }
    #expect(asked == ["writer", "delete \(folder.path)/new"])
    NSFileCoordinator.removeFilePresenter(shower)
    #expect(!NSFileCoordinator.filePresenters.contains { $0 === shower })
    let count = shower.all.count
    coordinator.coordinate(writingItemAt: url("new"), error: nil) { _ in }
    shower.queue.waitUntilAllOperationsAreFinished()
    #expect(shower.all.count == count)
  }

  @Test(arguments: [NSFileCoordinator.WritingOptions.forReplacing, []])
  func presentersAreToldOfMoves(_ options: NSFileCoordinator.WritingOptions) throws {
    try Data("text".utf8).write(to: url("a"))
    let (file, top) = (Shower(url("a")), Shower(url("")))
    NSFileCoordinator.addFilePresenter(file)
    NSFileCoordinator.addFilePresenter(top)
    defer {
      NSFileCoordinator.removeFilePresenter(file)
      NSFileCoordinator.removeFilePresenter(top)
    }
    let coordinator = NSFileCoordinator()
    var error: NSError?
    coordinator.coordinate(
      writingItemAt: url("a"), options: .forMoving, writingItemAt: url("b"), options: options,
      error: &error
    ) { old, new in
      coordinator.item(at: old, willMoveTo: new)
      do {
        try FileManager.default.moveItem(at: old, to: new)
        coordinator.item(at: old, didMoveTo: new)
      } catch { Issue.record(error) }
    }
    #expect(error == nil)
    #expect(try folder.read("b") == "text")
    try eventually("both are told") {
      file.all.contains("moved to b") && file.all.contains("changed")
        && top.all.contains("moved \(folder.path)/a to \(folder.path)/b")
    }
    var isIn = false
    coordinator.coordinate(readingItemAt: url("b"), error: nil) { _ in
      isIn = true
      #expect(file.all.suffix(2) == ["reader", "save"])
    }
    #expect(isIn)
    // Outside of an accessor no presenter is notified.
    let count = file.all.filter { $0.hasPrefix("moved") }.count
    coordinator.item(at: url("b"), didMoveTo: url("c"))
    file.queue.waitUntilAllOperationsAreFinished()
    #expect(file.all.filter { $0.hasPrefix("moved") }.count == count)
  }

  @Test func presentersInOtherProcessesSaveAndAreTold() throws {
    try Data("old".utf8).write(to: url("a"))
    let peer = try Running(
      Programs.built("DropInPeer"), ["present", url("a").path, "saved"],
      environment: [GroupsRoot.setting])
    try eventually("it presents") { try peer.output == "presenting\n" }
    let coordinator = NSFileCoordinator()
    var text = ""
    coordinator.coordinate(readingItemAt: url("a"), error: nil) { url in
      text = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
    }
    #expect(text == "saved")
    try eventually("it goes on") {
      try peer.output == "presenting\nreader\nsaved\nagain\n"
    }
    coordinator.coordinate(writingItemAt: url("a"), error: nil) { url in
      #expect((try? String(contentsOf: url, encoding: .utf8)) == "saved")
      try? Data("new".utf8).write(to: url)
    }
    try eventually("it reads it") { try peer.output.contains("shows new\n") }
    coordinator.coordinate(
      writingItemAt: url("a"), options: .forMoving, writingItemAt: url("b"), error: nil
    ) { old, new in
      try? FileManager.default.moveItem(at: old, to: new)
      coordinator.item(at: old, didMoveTo: new)
    }
    try eventually("it goes along") { try peer.output.contains("moved to b\n") }
    // The peer saves before the move, unless the machine is so busy that the access has stopped
    // waiting for the peer.
    try eventually("it reads it there") {
      try peer.output.contains(/moved to b\n(.*\n)*shows (saved|new)\n/)
    }
    coordinator.coordinate(writingItemAt: url("b"), options: .forDeleting, error: nil) { url in
      try? FileManager.default.removeItem(at: url)
    }
    try eventually("it lets go") { try peer.output.contains("writer\ndelete\n") }
    #expect(try peer.errors == "")
  }

  /// Saves with an access, without waiting for its end.
  private final class Saver: NSObject, NSFilePresenter, Sendable {
    let presentedItemURL: URL?
    let presentedItemOperationQueue = OperationQueue()
    private let saving = OperationQueue()

    init(_ url: URL) { presentedItemURL = url }

    func savePresentedItemChanges(
      completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
      let intent = NSFileAccessIntent.writingIntent(with: presentedItemURL!)
      NSFileCoordinator(filePresenter: self).coordinate(with: [intent], queue: saving) { error in
        completionHandler(error)
      }
    }
  }

  /// Several presenters that save would ask each other, and save again for the request.
  @Test func whoSavesOnAQueueAsksNobody() throws {
    let (saver, shower) = (Saver(url("a")), Shower(url("a")))
    for one in [saver, shower] as [any NSFilePresenter] { NSFileCoordinator.addFilePresenter(one) }
    defer {
      for one in [saver, shower] as [any NSFilePresenter] {
        NSFileCoordinator.removeFilePresenter(one)
      }
    }
    NSFileCoordinator().coordinate(readingItemAt: url("a"), error: nil) { _ in }
    try eventually("it is told of what was saved") { shower.all.contains("changed") }
    #expect(shower.all.filter { $0 == "reader" || $0 == "writer" } == ["reader"])
  }

  @Test func whoIsAddedBySeveralAtOnceIsRemovedByOne() throws {
    let shower = Shower(url("a"))
    for _ in 0..<10 {
      DispatchQueue.concurrentPerform(iterations: 4) { _ in
        NSFileCoordinator.addFilePresenter(shower)
      }
      NSFileCoordinator.removeFilePresenter(shower)
    }
    NSFileCoordinator().coordinate(readingItemAt: url("a"), error: nil) { _ in }
    #expect(shower.all == [])
  }

  /// The code that added the presenter gets no error, so the presenter would never be notified.
  @Test func whoCannotBeShownForAMomentIsShownLater() throws {
    let (shower, gone) = (Shower(url("a")), Shower(url("b")))
    let rule = FaultRule(.rename, path: "presenters/", persistent: true, .fail(.noSpace))
    FaultPoints.with([rule]) {
      NSFileCoordinator.addFilePresenter(shower)
      NSFileCoordinator.addFilePresenter(gone)
    }
    defer { NSFileCoordinator.removeFilePresenter(shower) }
    #expect(NSFileCoordinator.filePresenters.contains { $0 === shower })
    NSFileCoordinator.removeFilePresenter(gone)
    #expect(!NSFileCoordinator.filePresenters.contains { $0 === gone })
    try eventually("it is asked") {
      NSFileCoordinator().coordinate(readingItemAt: url("a"), error: nil) { _ in }
      return shower.all.contains("reader")
    }
    NSFileCoordinator().coordinate(readingItemAt: url("b"), error: nil) { _ in }
    #expect(gone.all == [])
  }

  /// A presenter that empties its queue is asked and notified all the same: the writer waits for
  /// it.
  @Test func whoEmptiesItsQueueIsAskedAllTheSame() throws {
    let shower = Shower(url("a"))
    NSFileCoordinator.addFilePresenter(shower)
    defer { NSFileCoordinator.removeFilePresenter(shower) }
    shower.queue.isSuspended = true
    let url = url("a")
    let thread = try WormholeSyscalls.Thread("writer") {
      NSFileCoordinator().coordinate(writingItemAt: url, error: nil) { _ in }
    }
    try eventually("it is to be asked") { shower.queue.operationCount > 0 }
    shower.queue.cancelAllOperations()
    shower.queue.isSuspended = false
    thread.join()
    try eventually("it is told") { shower.all.contains("changed") }
    #expect(shower.all.prefix(2) == ["writer", "save"])
  }

  @Test func whatIsNotImplementedIsInNobodysWay() throws {
    let silent = Silent()
    silent.presentedItemURL = url("a")
    NSFileCoordinator.addFilePresenter(silent)
    var calls = 0
    let coordinator = NSFileCoordinator()
    coordinator.coordinate(writingItemAt: url("a"), options: .forDeleting, error: nil) { _ in
      calls += 1
    }
    coordinator.coordinate(readingItemAt: url("a"), error: nil) { _ in calls += 1 }
    #expect(calls == 2)
    NSFileCoordinator.removeFilePresenter(silent)
  }
}
