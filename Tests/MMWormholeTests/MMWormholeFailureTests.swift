import Foundation
import MMWormhole
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// MMWormhole's reports of failures, and its treatment of damage.
@Suite struct MMWormholeFailureTests {
  private let group: String
  private let failures = Heard<String>()

  init() throws {
    try GroupsRoot.use()
    group = "group.test.\(UUID().uuidString)"
  }

  private func wormhole(_ type: MMWormholeTransitingType = .file) throws -> MMWormhole {
    let wormhole = MMWormhole(
      applicationGroupIdentifier: group, optionalDirectory: nil, transitingType: type)
    wormhole.failureHandler = { [failures] in failures.add("\($0)") }
    return wormhole
  }

  /// A number on devices; Foundation's archiver ends the process here.
  @Test(.blocking) func anArchivedDictionaryMayHoldACGFloat() throws {
    let wormhole = try wormhole()
    let sent: NSDictionary = ["size": CGFloat(2.5), "none": NSNull(), "list": [CGFloat(1)]]
    wormhole.passMessageObject(sent, identifier: "a")
    let got = wormhole.message(withIdentifier: "a") as? [String: Any]
    #expect(got?["size"] as? CGFloat == 2.5)
    #expect(got?["list"] as? [CGFloat] == [1])
    #expect(got?["none"] is NSNull)
    #expect(failures.all == [])
  }

  /// Foundation's archiver would end the process.
  @Test(.blocking) func whatCannotBeArchivedIsRefusedWithItsPlace() throws {
    struct Size {}
    let wormhole = try wormhole()
    let sent: NSDictionary = ["none": NSNull(), "sizes": [["a": Size()]]]
    wormhole.passMessageObject(sent, identifier: "a")
    #expect(wormhole.message(withIdentifier: "a") == nil)
    #expect(failures.all.count == 1)
    #expect(failures.all.first?.contains("'sizes[0].a' has the type Size") == true)
  }

  /// Foundation's archiver would end the process at a key, as at a value.
  @Test(.blocking) func aKeyThatCannotBeArchivedIsRefused() throws {
    struct Seat: Hashable {}
    let wormhole = try wormhole()
    let seats: [AnyHashable: Any] = [Seat(): 1]
    let sent: NSDictionary = ["none": NSNull(), "seats": seats]
    wormhole.passMessageObject(sent, identifier: "a")
    #expect(wormhole.message(withIdentifier: "a") == nil)
    #expect(failures.count == 1)
    #expect(failures.all.first?.contains("has the type Seat, which has no NSCoding") == true)
  }

  /// The file that holds a message.
  private func file(_ identifier: String) throws -> URL {
    let container = try SharedContainer(group: group)
    let folder = URL(fileURLWithPath: container.directory + "/channels/MMWormhole%2F" + identifier)
    return folder.appendingPathComponent("value.plist")
  }

  private func damage(_ identifier: String) throws {
    try FileManager.default.removeItem(at: file(identifier))
    try Data("no property list".utf8).write(to: file(identifier))
  }

  private final class Silent: MMWormholeTransiting {
    func writeMessageObject(
      _ messageObject: (any NSCoding)?, forIdentifier identifier: String
    ) -> Bool { false }
    func messageObject(forIdentifier identifier: String?) -> (any NSCoding)? { nil }
    func deleteContent(forIdentifier identifier: String?) {}
    func deleteContentForAllMessages() {}
  }

  /// Otherwise the listener would hear the former messenger, and no later call would start it.
  @Test(.blocking) func aListenerOfAMessengerThatCannotBeWatchedIsStartedAgain() throws {
    let wormhole = MMWormhole(applicationGroupIdentifier: nil, optionalDirectory: nil)
    wormhole.failureHandler = { [failures] in failures.add("\($0)") }
    wormhole.listenerQueue = DispatchQueue(label: "listeners")
    let files = MMWormholeFileTransiting(
      applicationGroupIdentifier: group, optionalDirectory: nil)
    wormhole.wormholeMessenger = files
    let heard = Heard<String>()
    wormhole.listenForMessage(withIdentifier: "m") { heard.add("first \($0!)") }
    wormhole.passMessageObject("a" as NSString, identifier: "m")
    try heard.wait("the message") { $0 == ["first a"] }
    #expect(failures.all == [])
    // The notices of a messenger of the program's own need the group, which is missing.
    wormhole.wormholeMessenger = Silent()
    #expect(failures.count == 1)
    wormhole.listenForMessage(withIdentifier: "m") { heard.add("second \($0!)") }
    #expect(failures.count == 2)
    #expect(failures.all.allSatisfy { $0.contains("the group's identifier is nil") })
    wormhole.wormholeMessenger = files
    wormhole.passMessageObject("b" as NSString, identifier: "m")
    try heard.wait("the next message") { $0.last == "second b" }
    #expect(failures.count == 2)
  }

  /// As a controller whose `deinit` stops its listening.
  @Test(.blocking) func theEndOfAReplacedHandlerMayUseTheWormhole() {
    let wormhole = MMWormhole(applicationGroupIdentifier: group)
    // A wormhole may be used from any thread.
    nonisolated(unsafe) let same = wormhole
    let outcomes = Heard<Bool>()
    wormhole.failureHandler = {
      [part = Departing(outcomes) { same.stopListeningForMessage(withIdentifier: "m") }] _ in
      withExtendedLifetime(part) {}
    }
    #expect(outcomes.all == [])
    wormhole.failureHandler = nil
    #expect(outcomes.all == [true])
  }

  @Test(.blocking) func theEndOfAReplacedMessengerMayUseTheWormhole() {
    final class FleetingMessenger: MMWormholeTransiting {
      private let part: Departing
      init(_ part: Departing) { self.part = part }
      func writeMessageObject(
        _ messageObject: (any NSCoding)?, forIdentifier identifier: String
      ) -> Bool { false }
      func messageObject(forIdentifier identifier: String?) -> (any NSCoding)? { nil }
      func deleteContent(forIdentifier identifier: String?) {}
      func deleteContentForAllMessages() {}
    }
    let wormhole = MMWormhole(applicationGroupIdentifier: group)
    // A wormhole may be used from any thread.
    nonisolated(unsafe) let same = wormhole
    let outcomes = Heard<Bool>()
    wormhole.wormholeMessenger = FleetingMessenger(
      Departing(outcomes) { same.stopListeningForMessage(withIdentifier: "m") })
    #expect(outcomes.all == [])
    wormhole.wormholeMessenger = Silent()
    #expect(outcomes.all == [true])
  }

  @Test(.blocking) func aMessengerThatTellsNobodyHasNotFailed() throws {
    let wormhole = try wormhole()
    let heard = Heard<String>()
    wormhole.listenerQueue = DispatchQueue(label: "listeners")
    wormhole.wormholeMessenger = Silent()
    wormhole.listenForMessage(withIdentifier: "m") { _ in heard.add("heard") }
    wormhole.passMessageObject("a" as NSString, identifier: "m")
    #expect(failures.all == [])
    #expect(heard.all == [])
  }

  /// Writes the messages of one identifier only.
  private final class Choosing: MMWormholeTransiting {
    func writeMessageObject(
      _ messageObject: (any NSCoding)?, forIdentifier identifier: String
    ) -> Bool { identifier == "written" }
    func messageObject(forIdentifier identifier: String?) -> (any NSCoding)? { "a" as NSString }
    func deleteContent(forIdentifier identifier: String?) {}
    func deleteContentForAllMessages() {}
  }

  /// The messenger reports that it has written nothing: its listeners would read an old message.
  @Test(.blocking) func aMessageThatWasNotWrittenIsNotNoticed() throws {
    let wormhole = try wormhole()
    let heard = Heard<String>()
    wormhole.listenerQueue = DispatchQueue(label: "listeners")
    wormhole.wormholeMessenger = Choosing()
    for name in ["refused", "written"] {
      wormhole.listenForMessage(withIdentifier: name) { _ in heard.add(name) }
    }
    for name in ["refused", "written"] {
      wormhole.passMessageObject("a" as NSString, identifier: name)
    }
    try heard.wait("the written message") { $0.contains("written") }
    #expect(heard.all == ["written"])
    #expect(failures.all == [])
  }

  /// The session of this process has no role, so all its requests fail.
  @Test(.blocking) func whatASessionCannotDoIsTold() throws {
    let sender = try wormhole(.sessionMessage)
    sender.passMessageObject("a" as NSString, identifier: "later")
    try failures.wait("the message") { $0.count == 1 }
    // The messenger alone reports no outcome.
    #expect(
      !sender.wormholeMessenger.writeMessageObject("a" as NSString, forIdentifier: "later"))
    let wormhole = try wormhole(.sessionContext)
    wormhole.passMessageObject("a" as NSString, identifier: "context")
    try failures.wait("the context") { $0.count == 2 }
    wormhole.clearMessageContents(forIdentifier: "context")
    try failures.wait("the clear") { $0.count == 3 }
    wormhole.clearAllMessageContents()
    try failures.wait("the clear of all") { $0.count == 4 }
  }

  @Test(.blocking) func whatIsDamagedIsCleared() throws {
    let wormhole = try wormhole()
    for name in ["one", "other"] {
      wormhole.passMessageObject("a" as NSString, identifier: name)
      try damage(name)
    }
    #expect(wormhole.message(withIdentifier: "one") == nil)
    #expect(failures.count == 1)
    wormhole.clearMessageContents(forIdentifier: "one")
    #expect(wormhole.message(withIdentifier: "one") == nil)
    wormhole.clearAllMessageContents()
    #expect(wormhole.message(withIdentifier: "other") == nil)
    #expect(failures.count == 1)
    let files = try #require(wormhole.wormholeMessenger as? MMWormholeFileTransiting)
    for name in ["one", "other"] {
      let path = try #require(files.filePath(forIdentifier: name))
      #expect((try? FileManager.default.destinationOfSymbolicLink(atPath: path)) == nil)
    }
  }

  @Test(.blocking) func whatCannotBeClearedKeepsNoOther() throws {
    let wormhole = try wormhole()
    let names = ["a", "b", "c", "d"]
    for name in names { wormhole.passMessageObject(name as NSString, identifier: name) }
    for name in ["a", "c"] {
      try FileManager.default.removeItem(at: file(name))
      try FileManager.default.createDirectory(at: file(name), withIntermediateDirectories: false)
    }
    wormhole.clearAllMessageContents()
    #expect(failures.count == 1)
    for name in ["b", "d"] { #expect(wormhole.message(withIdentifier: name) == nil) }
  }

  /// A program removes the directory of the group, as tests do.
  @Test(.blocking) func messagesContinueInTheNextContainer() throws {
    let wormhole = try wormhole()
    let heard = Heard<String>()
    wormhole.listenerQueue = DispatchQueue(label: "listener")
    wormhole.listenForMessage(withIdentifier: "m") { heard.add("\($0 ?? "nothing")") }
    wormhole.passMessageObject("one" as NSString, identifier: "m")
    try heard.wait("the first") { $0 == ["one"] }
    let directory = try SharedContainer(group: group).directory
    try removeTree(directory)
    wormhole.passMessageObject("two" as NSString, identifier: "m")
    #expect(wormhole.message(withIdentifier: "m") as? String == "two")
    #expect(try self.wormhole().message(withIdentifier: "m") as? String == "two")
    // The listener begins again a moment later, and hears no earlier messages.
    try eventually("the listener continues") {
      wormhole.passMessageObject("three" as NSString, identifier: "m")
      return heard.all.contains("three")
    }
    wormhole.stopListeningForMessage(withIdentifier: "m")
  }

  /// No call of its own shows to an object that only listens that the container is gone.
  @Test(.blocking) func anObjectThatOnlyListensContinuesInTheNextContainer() throws {
    let (listening, passing) = (try wormhole(), try wormhole())
    let heard = Heard<String>()
    listening.listenerQueue = DispatchQueue(label: "listener")
    listening.listenForMessage(withIdentifier: "m") { heard.add("\($0 ?? "nothing")") }
    passing.passMessageObject("one" as NSString, identifier: "m")
    try heard.wait("the first") { $0 == ["one"] }
    let directory = try SharedContainer(group: group).directory
    try removeTree(directory)
    try eventually("the listener continues") {
      passing.passMessageObject("two" as NSString, identifier: "m")
      return heard.all.contains("two")
    }
    listening.stopListeningForMessage(withIdentifier: "m")
  }

  /// Accesses to a file in a directory that is missing cannot be coordinated.
  @Test(.blocking) func coordinatedMessagesContinueToo() throws {
    let wormhole = try wormhole(.coordinatedFile)
    wormhole.passMessageObject("one" as NSString, identifier: "m")
    let container = URL(fileURLWithPath: try SharedContainer(group: group).directory)
    try removeTree(container.deletingLastPathComponent().path)
    #expect(wormhole.message(withIdentifier: "m") == nil)
    wormhole.passMessageObject("two" as NSString, identifier: "m")
    #expect(wormhole.message(withIdentifier: "m") as? String == "two")
    #expect(failures.all == [])
  }

  /// Another object has made the next container, and this one has passed no message since.
  @Test(.blocking) func aReadAndAClearContinueInTheNextContainer() throws {
    for type in [MMWormholeTransitingType.file, .coordinatedFile] {
      let (reading, clearing, other) = (try wormhole(type), try wormhole(type), try wormhole(type))
      for wormhole in [reading, clearing] {
        wormhole.passMessageObject("one" as NSString, identifier: "m")
      }
      try removeTree(SharedContainer(group: group).directory)
      other.passMessageObject("two" as NSString, identifier: "m")
      #expect(reading.message(withIdentifier: "m") as? String == "two", "\(type)")
      clearing.clearMessageContents(forIdentifier: "m")
      #expect(other.message(withIdentifier: "m") == nil, "\(type)")
      #expect(failures.all == [])
    }
  }

  /// The removal of the directory would fail if a read or a clear made the container again in the
  /// middle.
  @Test(.blocking) func aReadOrAClearMakesNoNextContainer() throws {
    for type in [MMWormholeTransitingType.file, .coordinatedFile] {
      let wormhole = try wormhole(type)
      wormhole.passMessageObject("one" as NSString, identifier: "m")
      let directory = try SharedContainer(group: group).directory
      try removeTree(directory)
      #expect(wormhole.message(withIdentifier: "m") == nil)
      wormhole.clearMessageContents(forIdentifier: "m")
      wormhole.clearAllMessageContents()
      #expect(!FileManager.default.fileExists(atPath: directory), "\(type)")
      #expect(failures.all == [])
    }
  }

  /// The container is removed before each of the call's system calls in turn.
  @Test(.blocking, arguments: [false, true])
  func aCoordinatedCallMakesNoNextContainerInItsMiddle(_ clears: Bool) throws {
    let wormhole = try wormhole(.coordinatedFile)
    var (number, isReached) = (0, true)
    while isReached {
      number += 1
      wormhole.passMessageObject("one" as NSString, identifier: "m")
      let directory = try SharedContainer(group: group).directory
      let (pause, isOver) = (FaultPause(), Monitor(false))
      let removing = try remover(of: directory, at: pause, unless: isOver)
      FaultPoints.with([FaultRule(nil, path: group, number: number, .pause(pause))]) {
        if clears {
          wormhole.clearMessageContents(forIdentifier: "m")
        } else {
          _ = wormhole.message(withIdentifier: "m")
        }
      }
      isOver.signal { $0 = true }
      removing.join()
      isReached = pause.isReached
      #expect(FileManager.default.fileExists(atPath: directory) != isReached, "call \(number)")
    }
    #expect(number > 10)
  }
}

/// Starts a thread that removes a directory when a call is paused.
func remover(
  of directory: String, at pause: FaultPause, unless isOver: Monitor<Bool>
) throws -> WormholeSyscalls.Thread {
  try WormholeSyscalls.Thread("removing") {
    while !pause.isReached {
      let end = isOver.wait(until: .now + .milliseconds(1)) { $0 ? true : nil }
      if end == true { break }
    }
    guard pause.isReached else { return }
    try? removeTree(directory)
    pause.open()
  }
}
