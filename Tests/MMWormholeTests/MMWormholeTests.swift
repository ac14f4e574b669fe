import AppGroups
import Foundation
import MMWormhole
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeDropIns
import WormholeSyscalls

/// The assertions of MMWormhole's own tests, in words of this package.
@Suite struct MMWormholeTests {
  private let group: String
  private let directory: String
  // The class guards its state, and is not Sendable, as in the original's header.
  nonisolated(unsafe) private let wormhole: MMWormhole
  private var files: MMWormholeFileTransiting {
    wormhole.wormholeMessenger as! MMWormholeFileTransiting
  }

  init() throws {
    let root = try GroupsRoot.use()
    group = "group.test.\(UUID().uuidString)"
    wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: "wormhole")
    wormhole.listenerQueue = DispatchQueue(label: "listeners")
    directory = "\(root)/\(group)/wormhole"
  }

  private var another: MMWormhole {
    let other = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: "wormhole")
    other.listenerQueue = DispatchQueue(label: "other listeners")
    return other
  }

  private func text(_ message: Any?) -> String { message.map { "\($0)" } ?? "nil" }

  // MARK: Files

  @Test(.blocking) func filesLieWhereTheirNamesSay() {
    #expect(files.messagePassingDirectoryPath() == directory)
    #expect(files.filePath(forIdentifier: "name") == "\(directory)/name.archive")
    #expect(files.filePath(forIdentifier: nil) == nil)
    #expect(files.filePath(forIdentifier: "") == nil)
    let plain = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: nil)
    let path = (plain.wormholeMessenger as! MMWormholeFileTransiting)
      .filePath(forIdentifier: "name")
    #expect(path == directory.dropLast("wormhole".count) + "name.archive")
  }

  @Test(.blocking) func passingMakesAFileAndClearingRemovesIt() throws {
    let path = try #require(files.filePath(forIdentifier: "name"))
    #expect(!FileManager.default.fileExists(atPath: path))
    wormhole.passMessageObject(["a": 1] as NSDictionary, identifier: "name")
    #expect(FileManager.default.fileExists(atPath: path))
    wormhole.clearMessageContents(forIdentifier: "name")
    #expect(!FileManager.default.fileExists(atPath: path))
    #expect(wormhole.message(withIdentifier: "name") == nil)
  }

  /// With `.coordinatedFile`, passing and reading wait for coordinated accesses; with `.file` not.
  @Test(.blocking) func coordinatedFilesTakeTheirTurn() throws {
    // The class guards its state.
    nonisolated(unsafe) let coordinated = MMWormhole(
      applicationGroupIdentifier: group, optionalDirectory: "wormhole",
      transitingType: .coordinatedFile)
    let path = try #require(files.filePath(forIdentifier: "turn"))
    let isPassed = Monitor(false)
    let found = Monitor<String?>(nil)
    let threads = try Coordinator().write(path) { _ in
      wormhole.passMessageObject("at once" as NSString, identifier: "turn")
      #expect(text(wormhole.message(withIdentifier: "turn")) == "at once")
      let passing = try WormholeSyscalls.Thread("passing") {
        coordinated.passMessageObject("in turn" as NSString, identifier: "turn")
        isPassed.signal { $0 = true }
      }
      let reading = try WormholeSyscalls.Thread("reading") { [self] in
        let message = text(coordinated.message(withIdentifier: "turn"))
        found.signal { $0 = message }
      }
      #expect(isPassed.wait(until: .now + .milliseconds(300)) { $0 ? true : nil } == nil)
      #expect(found.withLock { $0 } == nil)
      #expect(text(wormhole.message(withIdentifier: "turn")) == "at once")
      return [passing, reading]
    }
    for thread in threads { thread.join() }
    #expect(found.withLock { $0 } != nil)
    #expect(text(coordinated.message(withIdentifier: "turn")) == "in turn")
    coordinated.clearMessageContents(forIdentifier: "turn")
    #expect(coordinated.message(withIdentifier: "turn") == nil)
  }

  /// As a program that opens the file several times while it reads the message.
  @Test(.blocking) func aCoordinatedClearWaitsForAReader() throws {
    // The class guards its state.
    nonisolated(unsafe) let coordinated = MMWormhole(
      applicationGroupIdentifier: group, optionalDirectory: "wormhole",
      transitingType: .coordinatedFile)
    coordinated.passMessageObject("text" as NSString, identifier: "turn")
    let path = try #require(files.filePath(forIdentifier: "turn"))
    let isCleared = Monitor(false)
    let clearing = try Coordinator().read(path) { _ in
      let clearing = try WormholeSyscalls.Thread("clearing") {
        coordinated.clearMessageContents(forIdentifier: "turn")
        isCleared.signal { $0 = true }
      }
      #expect(isCleared.wait(until: .now + .seconds(1)) { $0 ? true : nil } == nil)
      #expect(text(wormhole.message(withIdentifier: "turn")) == "text")
      return clearing
    }
    clearing.join()
    #expect(wormhole.message(withIdentifier: "turn") == nil)
  }

  @Test(.blocking) func clearingAllRemovesAll() throws {
    for name in ["one", "two", "a/b"] {
      wormhole.passMessageObject(name as NSString, identifier: name)
    }
    let elsewhere = MMWormhole(
      applicationGroupIdentifier: group, optionalDirectory: "wormhole/sub")
    elsewhere.passMessageObject("kept" as NSString, identifier: "kept")
    wormhole.clearAllMessageContents()
    for name in ["one", "two", "a/b"] {
      #expect(wormhole.message(withIdentifier: name) == nil)
      let path = try #require(files.filePath(forIdentifier: name))
      #expect((try? FileManager.default.destinationOfSymbolicLink(atPath: path)) == nil)
    }
    #expect(elsewhere.message(withIdentifier: "kept") as? String == "kept")
  }

  @Test(.blocking) func aMessengerWritesReadsAndRemoves() {
    #expect(files.writeMessageObject("text" as NSString, forIdentifier: "name"))
    #expect(files.messageObject(forIdentifier: "name") as? NSString == "text")
    #expect(files.messageObject(forIdentifier: nil) == nil)
    #expect(files.messageObject(forIdentifier: "other") == nil)
    files.deleteContent(forIdentifier: "name")
    #expect(files.messageObject(forIdentifier: "name") == nil)
    files.deleteContent(forIdentifier: nil)
    files.deleteContentForAllMessages()
  }

  // MARK: Messages

  @Test(.blocking) func noIdentifierDoesNothing() {
    wormhole.passMessageObject("text" as NSString, identifier: nil)
    wormhole.passMessageObject(nil, identifier: nil)
    wormhole.clearMessageContents(forIdentifier: nil)
    wormhole.listenForMessage(withIdentifier: nil) { _ in }
    wormhole.stopListeningForMessage(withIdentifier: nil)
    #expect(wormhole.message(withIdentifier: nil) == nil)
  }

  @Test(.blocking) func aMessageStaysUntilTheNext() {
    wormhole.passMessageObject(
      ["title": "film", "seats": [1, 2]] as NSDictionary, identifier: "m")
    for _ in 0..<2 {
      let message = another.message(withIdentifier: "m") as? [String: Any]
      #expect(message?["title"] as? String == "film")
      #expect(message?["seats"] as? [Int] == [1, 2])
    }
    wormhole.passMessageObject(5 as NSNumber, identifier: "m")
    #expect(wormhole.message(withIdentifier: "m") as? Int == 5)
  }

  @Test(.blocking) func otherObjectsAreArchived() throws {
    let set = NSSet(array: ["a", "b"])
    wormhole.passMessageObject(set, identifier: "set")
    #expect(another.message(withIdentifier: "set") as? NSSet == set)
    // A plain value that looks like an archive stays a plain value.
    let odd = ["MMWormhole.archive": Data([1, 2, 3])]
    wormhole.passMessageObject(odd as NSDictionary, identifier: "odd")
    #expect(another.message(withIdentifier: "odd") as? [String: Data] == odd)
    // Another program may have written such a value.
    let plain: [String: Data] = ["MMWormhole.archive": Data([1, 2, 3]), "more": Data([4])]
    try SharedContainer(group: group).channel("MMWormhole/wormhole/plain", of: [String: Data].self)
      .put(plain)
    #expect(another.message(withIdentifier: "plain") as? [String: Data] == plain)
  }

  // MARK: Listening

  @Test(.blocking) func onesOwnMessageIsHeardOnce() throws {
    let heard = Heard<String>()
    wormhole.listenForMessage(withIdentifier: "m") { heard.add(text($0)) }
    wormhole.listenForMessage(withIdentifier: "other") { _ in heard.add("other") }
    wormhole.passMessageObject("one" as NSString, identifier: "m")
    try heard.wait("the first") { $0 == ["one"] }
    wormhole.passMessageObject("one" as NSString, identifier: "m")
    try heard.wait("the same again") { $0 == ["one", "one"] }
    wormhole.stopListeningForMessage(withIdentifier: "m")
    wormhole.passMessageObject("two" as NSString, identifier: "m")
    wormhole.passMessageObject("end" as NSString, identifier: "other")
    try heard.wait("the end") { $0 == ["one", "one", "other"] }
  }

  @Test(.blocking) func aSecondListenerTakesThePlaceOfTheFirst() throws {
    let heard = Heard<String>()
    wormhole.listenForMessage(withIdentifier: "m") { _ in heard.add("first") }
    wormhole.listenForMessage(withIdentifier: "m") { _ in heard.add("second") }
    wormhole.passMessageObject("a" as NSString, identifier: "m")
    try heard.wait("it") { $0 == ["second"] }
    wormhole.passMessageObject("b" as NSString, identifier: "m")
    try heard.wait("it again") { $0 == ["second", "second"] }
  }

  // MARK: What its users complained of

  @Test(.blocking) func anotherListenerIsAnotherObjects() throws {
    let (first, second) = (Heard<String>(), Heard<String>())
    let other = another
    wormhole.listenForMessage(withIdentifier: "m") { first.add(text($0)) }
    other.listenForMessage(withIdentifier: "m") { second.add(text($0)) }
    wormhole.passMessageObject("a" as NSString, identifier: "m")
    try first.wait("the first") { $0 == ["a"] }
    try second.wait("the second") { $0 == ["a"] }
  }

  @Test(.blocking) func nilTakesAwayAndIsHeardAsNil() throws {
    let heard = Heard<String>()
    wormhole.passMessageObject("old" as NSString, identifier: "m")
    wormhole.listenForMessage(withIdentifier: "m") { heard.add(text($0)) }
    wormhole.passMessageObject(nil, identifier: "m")
    try heard.wait("nil") { $0 == ["nil"] }
    #expect(wormhole.message(withIdentifier: "m") == nil)
  }

  @Test(.blocking) func aClearIsNotHeard() throws {
    let heard = Heard<String>()
    wormhole.listenForMessage(withIdentifier: "m") { heard.add(text($0)) }
    wormhole.passMessageObject("a" as NSString, identifier: "m")
    try heard.wait("it") { $0 == ["a"] }
    wormhole.clearMessageContents(forIdentifier: "m")
    wormhole.passMessageObject("b" as NSString, identifier: "m")
    try heard.wait("the next") { $0 == ["a", "b"] }
  }

  @Test(.blocking) func identifiersOfAnyKindAreApartAndStayInside() throws {
    let names = ["a/b", "../x", "a%2Fb", ".hidden", "ü", "u\u{308}", "a b", "*", "A", "a"]
    for name in names { wormhole.passMessageObject(name as NSString, identifier: name) }
    for name in names { #expect(another.message(withIdentifier: name) as? String == name) }
    let parent = String(directory.dropLast("/wormhole".count))
    #expect(!FileManager.default.fileExists(atPath: parent + "/x.archive"))
    for name in names {
      let path = try #require(files.filePath(forIdentifier: name))
      #expect(path.hasPrefix(directory + "/") && !path.dropFirst(directory.count + 1).contains("/"))
    }
  }

  @Test(.blocking) func groupsAndDirectoriesAreApart() throws {
    let heard = Heard<String>()
    let others = [
      MMWormhole(applicationGroupIdentifier: group + ".2", optionalDirectory: "wormhole"),
      MMWormhole(applicationGroupIdentifier: group, optionalDirectory: "elsewhere"),
      MMWormhole(applicationGroupIdentifier: group, optionalDirectory: nil),
    ]
    wormhole.listenForMessage(withIdentifier: "m") { heard.add(text($0)) }
    for other in others { other.passMessageObject("theirs" as NSString, identifier: "m") }
    wormhole.passMessageObject("ours" as NSString, identifier: "m")
    try heard.wait("ours") { $0 == ["ours"] }
    #expect(another.message(withIdentifier: "m") as? String == "ours")
  }

  @Test(.blocking) func failuresAreTold() throws {
    let failures = Heard<String>()
    wormhole.failureHandler = { failures.add("\($0)") }
    wormhole.passMessageObject("a" as NSString, identifier: String(repeating: "x", count: 400))
    try failures.wait("too long a name") { $0.count == 1 }
    #expect(failures.all[0].contains("x"))
    // A foreign file has the name of the link.
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true)
    try Data("mine".utf8).write(to: URL(fileURLWithPath: directory + "/taken.archive"))
    wormhole.passMessageObject("a" as NSString, identifier: "taken")
    try failures.wait("a name that is taken") { $0.count == 2 }
    #expect(wormhole.message(withIdentifier: "taken") == nil)
  }

  /// As the original's header has it, the initialiser never fails.
  @Test(.blocking) func aContainerThatCannotBeOpenedFailsEachCall() throws {
    let groups = [String(repeating: "x", count: 400), nil]
    for type in [MMWormholeTransitingType.file, .coordinatedFile] {
      for group in groups {
        let failures = Heard<String>()
        let closed = MMWormhole(
          applicationGroupIdentifier: group, optionalDirectory: nil, transitingType: type)
        closed.failureHandler = { failures.add("\($0)") }
        closed.passMessageObject("a" as NSString, identifier: "m")
        closed.listenForMessage(withIdentifier: "m") { _ in }
        #expect(closed.message(withIdentifier: "m") == nil)
        closed.clearAllMessageContents()
        #expect(failures.all.count == 4, "\(failures.all)")
        #expect(Set(failures.all).count == 1, "each call says why the container is closed")
      }
    }
    let open = MMWormhole(
      applicationGroupIdentifier: group, optionalDirectory: nil, transitingType: .coordinatedFile)
    #expect(open.wormholeMessenger is MMWormholeCoordinatedFileTransiting)
  }

  /// A program's subclass may change what is written and read.
  @Test(.blocking) func theMethodsOfASubclassAreCalled() throws {
    // The class has no state of its own.
    final class Loud: MMWormholeFileTransiting, @unchecked Sendable {
      override func writeMessageObject(
        _ messageObject: (any NSCoding)?, forIdentifier identifier: String
      ) -> Bool {
        let text = (messageObject as? NSString)?.uppercased
        return super.writeMessageObject(text as NSString?, forIdentifier: identifier)
      }
    }
    let heard = Heard<String>()
    wormhole.wormholeMessenger = Loud(
      applicationGroupIdentifier: group, optionalDirectory: "wormhole")
    wormhole.listenForMessage(withIdentifier: "m") { heard.add(text($0)) }
    wormhole.passMessageObject("a" as NSString, identifier: "m")
    try heard.wait("it") { $0 == ["A"] }
    #expect(another.message(withIdentifier: "m") as? String == "A")
  }

  @Test(.blocking) func aTransportNotifiesTheListenerOfItsMessage() throws {
    let heard = Heard<String>()
    wormhole.listenForMessage(withIdentifier: "m") { heard.add(text($0)) }
    let delegate: any MMWormholeTransitingDelegate = wormhole
    delegate.notifyListenerForMessage(withIdentifier: "other", message: "b" as NSString)
    delegate.notifyListenerForMessage(withIdentifier: nil, message: "c" as NSString)
    delegate.notifyListenerForMessage(withIdentifier: "m", message: "a" as NSString)
    try heard.wait("it") { $0 == ["a"] }
  }

  @Test(.blocking) func anArchiveOfAnUnknownClassIsAnError() throws {
    let failures = Heard<String>()
    wormhole.failureHandler = { failures.add("\($0)") }
    let container = try SharedContainer(group: group)
    let archive = try NSKeyedArchiver.archivedData(
      withRootObject: NSSet(array: [1]), requiringSecureCoding: false)
    let text = String(decoding: archive, as: UTF8.self)
    #expect(text.contains("NSSet"))
    var bytes = Array(archive)
    // The name occurs more than once, in varying order.
    while let place = bytes.firstRange(of: Array("NSSet".utf8)) {
      bytes.replaceSubrange(place, with: Array("NoSet".utf8))
    }
    try container.channel("MMWormhole/wormhole/m", of: [String: Data].self)
      .put(["MMWormhole.archive": Data(bytes)])
    #expect(wormhole.message(withIdentifier: "m") == nil)
    #expect(failures.count == 1)
  }

  @Test(.blocking) func aMessengerOfTheProgramsOwnIsAsked() throws {
    final class Mine: MMWormholeTransiting {
      let kept = Monitor<[String: String]>([:])
      func writeMessageObject(
        _ messageObject: (any NSCoding)?, forIdentifier identifier: String
      ) -> Bool {
        kept.withLock { $0[identifier] = (messageObject as Any) as? String }
        return identifier != "silent"
      }
      func messageObject(forIdentifier identifier: String?) -> (any NSCoding)? {
        kept.withLock { $0[identifier ?? ""] }.map { NSString(string: $0) }
      }
      func deleteContent(forIdentifier identifier: String?) {
        kept.withLock { $0[identifier ?? ""] = nil }
      }
      func deleteContentForAllMessages() { kept.withLock { $0 = [:] } }
    }
    let heard = Heard<String>()
    wormhole.listenForMessage(withIdentifier: "m") { heard.add(text($0)) }
    wormhole.wormholeMessenger = Mine()
    wormhole.passMessageObject("a" as NSString, identifier: "m")
    try heard.wait("it") { $0 == ["a"] }
    #expect(wormhole.message(withIdentifier: "m") as? String == "a")
    #expect(another.message(withIdentifier: "m") == nil)
    wormhole.clearMessageContents(forIdentifier: "m")
    #expect(wormhole.message(withIdentifier: "m") == nil)
    wormhole.clearAllMessageContents()
  }
}
