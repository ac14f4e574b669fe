import AppGroups
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// `NSFileCoordinator`, used as in code that was written for devices.
@Suite(.blocking) struct FileCoordinatorTests {
  private let folder: TemporaryDirectory

  init() throws {
    try GroupsRoot.use()
    folder = try TemporaryDirectory()
  }

  private func url(_ name: String) -> URL { URL(fileURLWithPath: folder.path + "/" + name) }

  /// Runs the body while another coordinator has an access.
  private func whileSomebodyWrites(_ name: String, _ body: () throws -> Void) throws {
    let gate = Monitor((isInside: false, isOpen: false))
    let url = url(name)
    let thread = try WormholeSyscalls.Thread("holder") {
      NSFileCoordinator().coordinate(writingItemAt: url, error: nil) { _ in
        gate.signal { $0.isInside = true }
        gate.wait(until: .now + patience) { $0.isOpen ? () : nil }
      }
    }
    defer {
      gate.signal { $0.isOpen = true }
      thread.join()
    }
    gate.wait(until: .now + patience) { $0.isInside ? () : nil }
    try body()
  }

  @Test func readsAndWrites() throws {
    let coordinator = NSFileCoordinator(filePresenter: nil)
    var error: NSError?
    coordinator.coordinate(writingItemAt: url("a"), options: .forReplacing, error: &error) { url in
      try? Data("one".utf8).write(to: url)
    }
    #expect(error == nil)
    var text = ""
    coordinator.coordinate(readingItemAt: url("a"), options: [], error: &error) { url in
      text = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
    }
    #expect(text == "one")
    // The accessor made no file, and the old file stays.
    coordinator.coordinate(writingItemAt: url("a"), options: .forReplacing, error: &error) { _ in }
    #expect(error == nil)
    coordinator.coordinate(
      readingItemAt: url("a"), options: [], writingItemAt: url("b"), options: [], error: &error
    ) { from, to in
      try? FileManager.default.copyItem(at: from, to: to)
    }
    coordinator.coordinate(
      writingItemAt: url("b"), options: .forMoving, writingItemAt: url("c"),
      options: .forReplacing, error: &error
    ) { from, to in
      try? FileManager.default.moveItem(at: from, to: to)
    }
    #expect(error == nil)
    #expect(try folder.descriptor.names().sorted() == ["a", "c"])
    #expect(try folder.read("c") == "one")
  }

  /// Only the files that are to be replaced, and for which the accessor makes nothing, stay as they
  /// are.
  @Test(arguments: [["a", "b"], ["b", "a"]])
  func whatIsMadeReplacesItsFileAndNothingElse(_ names: [String]) throws {
    for name in names { try Data("old".utf8).write(to: url(name)) }
    var error: NSError?
    NSFileCoordinator().coordinate(
      writingItemAt: url(names[0]), options: .forReplacing,
      writingItemAt: url(names[1]), options: .forReplacing, error: &error
    ) { first, second in
      try? Data("new".utf8).write(to: names[0] == "b" ? first : second)
    }
    #expect(error == nil)
    #expect(try folder.read("a") == "old")
    #expect(try folder.read("b") == "new")
    let intents = names.map {
      NSFileAccessIntent.writingIntent(with: url($0), options: .forReplacing)
    }
    let errors = Heard<Bool>()
    NSFileCoordinator().coordinate(with: intents, queue: OperationQueue()) { error in
      errors.add(error != nil)
      try? Data("newer".utf8).write(to: intents[names[0] == "b" ? 0 : 1].url)
    }
    try eventually("it is there") { try folder.read("b") == "newer" }
    #expect(errors.all == [false])
    try eventually("nothing is left") { try folder.descriptor.names().sorted() == ["a", "b"] }
    #expect(try folder.read("a") == "old")
  }

  @Test func nothingToWaitForIsRunAtOnce() throws {
    let coordinator = NSFileCoordinator()
    var calls = 0
    coordinator.prepare(forReadingItemsAt: [], writingItemsAt: [], error: nil) { done in
      calls += 1
      done()
    }
    #expect(calls == 1)
    let errors = Monitor<[(any Error)?]>([])
    coordinator.coordinate(with: [], queue: OperationQueue()) { error in
      errors.signal { $0.append(error) }
    }
    let error = errors.wait(until: .now + patience) { $0.first }
    #expect(error != nil, "it was called")
    #expect(error.flatMap(\.self) == nil)
  }

  @Test func whoPassesTheStoppedWaitsSoMuchLonger() {
    let coordinator = NSFileCoordinator()
    #expect(coordinator.timeout == .seconds(30))
    coordinator.takeOverAfter = .seconds(60)
    #expect(coordinator.timeout == .seconds(90))
    coordinator.timeout = .seconds(5)
    #expect(coordinator.timeout == .seconds(5))
    #expect(Coordinator.timeout(nil, .seconds(-1)) == .seconds(30))
  }

  @Test func aWaitThatEndsSetsTheErrorAndDoesNotRunTheAccessor() throws {
    try whileSomebodyWrites("a") {
      let coordinator = NSFileCoordinator()
      coordinator.timeout = .milliseconds(20)
      var error: NSError?
      coordinator.coordinate(readingItemAt: url("a"), options: [], error: &error) { _ in
        Issue.record("it ran")
      }
      #expect(error?.domain == NSCocoaErrorDomain)
      #expect(error?.code == CocoaError.Code.fileLocking.rawValue)
      #expect((error?.userInfo[NSUnderlyingErrorKey] as? WormholeError)?.code == .timedOut)
      coordinator.timeout = patience
      let codes = Monitor([Int]())
      let file = url("a")
      let thread = try WormholeSyscalls.Thread("waiting") {
        var error: NSError?
        coordinator.coordinate(readingItemAt: file, options: [], error: &error) { _ in }
        codes.withLock { $0.append(error?.code ?? 0) }
      }
      try eventually("it is cancelled") {
        coordinator.cancel()
        return codes.withLock { !$0.isEmpty }
      }
      thread.join()
      #expect(codes.withLock { $0 } == [3072])
    }
  }

  @Test func coordinatorsOfOnePurposeDoNotWaitForEachOther() throws {
    let (one, other) = (NSFileCoordinator(), NSFileCoordinator())
    other.purposeIdentifier = one.purposeIdentifier
    var isInside = false
    one.coordinate(writingItemAt: url("a"), options: [], error: nil) { url in
      other.coordinate(writingItemAt: url, options: [], error: nil) { _ in isInside = true }
    }
    #expect(isInside)
  }

  @Test func intentsAreHadOnAQueue() throws {
    let queue = OperationQueue()
    let intents = [
      NSFileAccessIntent.writingIntent(with: url("a"), options: .forReplacing),
      NSFileAccessIntent.readingIntent(with: url("b"), options: []),
    ]
    let errors = Monitor([String]())
    let file = url("a")
    NSFileCoordinator().coordinate(with: intents, queue: queue) { error in
      if error == nil { try? Data("made".utf8).write(to: intents[0].url) }
      var nested: NSError?
      NSFileCoordinator().coordinate(readingItemAt: file, options: [], error: &nested) { _ in }
      errors.signal { $0.append("\(error.map { "\($0)" } ?? "none") \(nested?.code ?? 0)") }
    }
    try eventually("it ran") { errors.withLock { !$0.isEmpty } }
    #expect(errors.withLock { $0 } == ["none 255"])
    try eventually("it is there") { try folder.descriptor.names() == ["a"] }
    #expect(try folder.read("a") == "made")
    try whileSomebodyWrites("a") {
      let coordinator = NSFileCoordinator()
      coordinator.timeout = .milliseconds(20)
      let failed = Monitor<Int?>(nil)
      coordinator.coordinate(with: intents, queue: queue) { error in
        failed.signal { $0 = (error as NSError?)?.code }
      }
      #expect(failed.wait(until: .now + patience) { $0 } == 255)
    }
  }

  /// When the requesting call has returned, the wait may not have begun.
  @Test func whatWasAskedForIsCancelledHoweverSoon() throws {
    let queue = OperationQueue()
    try whileSomebodyWrites("a") {
      let codes = Monitor([Int]())
      let intent = NSFileAccessIntent.readingIntent(with: url("a"))
      for _ in 0..<20 {
        let coordinator = NSFileCoordinator()
        coordinator.timeout = .seconds(5)
        coordinator.coordinate(with: [intent], queue: queue) { error in
          codes.signal { $0.append((error as NSError?)?.code ?? 0) }
        }
        coordinator.cancel()
      }
      try eventually("all are told") { codes.withLock { $0.count == 20 } }
      #expect(Set(codes.withLock { $0 }) == [CocoaError.userCancelled.rawValue])
    }
  }

  /// A program that cancels the queued operation does not want the accessor to run, and other
  /// accesses wait.
  @Test func anAccessorThatIsTakenFromItsQueueEndsItsAccess() throws {
    let (queue, calls) = (OperationQueue(), Monitor(0))
    queue.isSuspended = true
    let intent = NSFileAccessIntent.writingIntent(with: url("a"))
    NSFileCoordinator().coordinate(with: [intent], queue: queue) { _ in
      calls.withLock { $0 += 1 }
    }
    try eventually("it is in the queue") { queue.operationCount == 1 }
    queue.cancelAllOperations()
    queue.isSuspended = false
    let coordinator = NSFileCoordinator()
    coordinator.timeout = .seconds(10)
    var error: NSError?
    coordinator.coordinate(writingItemAt: url("a"), error: &error) { _ in }
    #expect(error == nil)
    #expect(calls.withLock { $0 } == 0)
  }

  /// When the end of an access fails, its accessor is not called a second time.
  @Test func anAccessorIsCalledOnceThoughItsAccessCannotEnd() throws {
    let manager = FileManager.default
    let group = try #require(
      manager.containerURL(forSecurityApplicationGroupIdentifier: "group.unended"))
    let running = group.appendingPathComponent(".wormhole/system/coordination/running").path
    let (queue, errors) = (OperationQueue(), Heard<String>())
    let intent = NSFileAccessIntent.writingIntent(with: group.appendingPathComponent("a"))
    NSFileCoordinator().coordinate(with: [intent], queue: queue) { error in
      if error == nil {
        try? manager.moveItem(atPath: running, toPath: running + ".away")
        try? Data().write(to: URL(fileURLWithPath: running))
      }
      errors.add(error.map { "\($0)" } ?? "none")
    }
    try errors.wait("it is called") { !$0.isEmpty }
    // A second call would follow at once.
    #expect(throws: TooLate.self) {
      try errors.wait("it is called again", within: .milliseconds(300)) { $0.count > 1 }
    }
    #expect(errors.all == ["none"])
    try manager.removeItem(atPath: running)
    try manager.moveItem(atPath: running + ".away", toPath: running)
  }

  private func copies(_ name: String) throws -> [String] {
    let folder = FileManager.default.temporaryDirectory.path
    return try FileManager.default.contentsOfDirectory(atPath: folder).filter {
      $0.hasPrefix("wormhole-upload-")
        && FileManager.default.fileExists(atPath: "\(folder)/\($0)/\(name)")
    }
  }

  @Test func whatIsUploadedIsACopyThatNobodyChanges() throws {
    let name = UUID().uuidString
    try folder.write("text", to: name)
    var error: NSError?
    var kept: FileHandle?
    NSFileCoordinator().coordinate(
      readingItemAt: url(name), options: .forUploading, error: &error
    ) { copy in
      #expect(copy.lastPathComponent == name)
      // Another coordinator continues at the same time.
      let other = NSFileCoordinator()
      other.timeout = patience
      other.coordinate(writingItemAt: url(name), error: nil) { url in
        try? Data("other".utf8).write(to: url)
      }
      #expect((try? String(contentsOf: copy, encoding: .utf8)) == "text")
      kept = try? FileHandle(forReadingFrom: copy)
      #expect((try? copies(name).count) == 1)
    }
    #expect(error == nil)
    #expect(try kept?.readToEnd() == Data("text".utf8))
    #expect(try folder.read(name) == "other")
    #expect(try copies(name) == [])
    // A file that is not copied is held as long as the accessor runs.
    NSFileCoordinator().coordinate(
      readingItemAt: url(name), options: .forUploading, writingItemAt: url("b"), error: &error
    ) { copy, file in
      try? FileManager.default.copyItem(at: copy, to: file)
      var nested: NSError?
      NSFileCoordinator().coordinate(readingItemAt: file, error: &nested) { _ in }
      #expect(nested?.code == 255)
    }
    #expect(try folder.read("b") == "other")
    #expect(try copies(name) == [])
  }

  /// The directory of temporary files belongs to all users.
  @Test func onlyItsUserMayReadACopy() throws {
    let name = UUID().uuidString
    try folder.write("text", to: name)
    var modes: [Int?] = []
    NSFileCoordinator().coordinate(
      readingItemAt: url(name), options: .forUploading, error: nil
    ) { copy in
      modes = [copy, copy.deletingLastPathComponent()].map {
        let attributes = try? FileManager.default.attributesOfItem(atPath: $0.path)
        return (attributes?[.posixPermissions] as? NSNumber)?.intValue
      }
    }
    #expect(modes == [0o600, 0o700])
  }

  @Test func whatIsUploadedOnAQueueIsACopy() throws {
    let name = UUID().uuidString
    try folder.write("text", to: name)
    let intent = NSFileAccessIntent.readingIntent(with: url(name), options: .forUploading)
    let found = Monitor<String?>(nil)
    NSFileCoordinator().coordinate(with: [intent], queue: OperationQueue()) { _ in
      let text = try? String(contentsOf: intent.url, encoding: .utf8)
      found.signal { $0 = text ?? "nothing" }
    }
    #expect(found.wait(until: .now + patience) { $0 } == "text")
    #expect(intent.url != url(name))
    try eventually("it is removed") { try copies(name) == [] }
  }

  @Test func aFolderIsNotUploaded() throws {
    for (name, code) in [("", CocoaError.Code.featureUnsupported), ("no", .fileNoSuchFile)] {
      var error: NSError?
      NSFileCoordinator().coordinate(
        readingItemAt: url(name), options: .forUploading, error: &error
      ) { _ in Issue.record("it ran") }
      #expect(error?.domain == NSCocoaErrorDomain)
      #expect(error?.code == code.rawValue)
    }
  }

  @Test func manyAreHadAtOnce() throws {
    let coordinator = NSFileCoordinator()
    var text = ""
    coordinator.prepare(
      forReadingItemsAt: [url("a")], options: [], writingItemsAt: [url("b")], options: [],
      error: nil
    ) { done in
      coordinator.coordinate(writingItemAt: url("b"), options: [], error: nil) { url in
        try? Data("made".utf8).write(to: url)
      }
      coordinator.coordinate(readingItemAt: url("b"), options: [], error: nil) { url in
        text = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
      }
      done()
    }
    #expect(text == "made")
  }

  /// `prepare` gives the file itself; the accesses inside it copy and replace the file.
  @Test func preparingNeitherCopiesNorReplaces() throws {
    let name = UUID().uuidString
    try folder.write("text", to: name)
    let coordinator = NSFileCoordinator()
    var others: NSError?
    coordinator.prepare(
      forReadingItemsAt: [url(name)], options: .forUploading, writingItemsAt: [], options: [],
      error: nil
    ) { done in
      #expect((try? copies(name)) == [])
      let other = NSFileCoordinator()
      other.timeout = .milliseconds(20)
      other.coordinate(writingItemAt: url(name), error: &others) { _ in Issue.record("it ran") }
      done()
    }
    #expect(others?.code == CocoaError.Code.fileLocking.rawValue, "it is read here")
    coordinator.prepare(
      forReadingItemsAt: [], options: [], writingItemsAt: [url(name)], options: .forReplacing,
      error: nil
    ) { done in
      #expect((try? folder.descriptor.names()) == [name], "no place for another beside it")
      coordinator.coordinate(writingItemAt: url(name), options: .forReplacing, error: nil) { url in
        try? Data("new".utf8).write(to: url)
      }
      #expect((try? folder.read(name)) == "new")
      done()
    }
    #expect(try folder.read(name) == "new")
  }
}
