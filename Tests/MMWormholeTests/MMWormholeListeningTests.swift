import Foundation
import MMWormhole
import TestSupport
import TestTraits
import Testing
import WormholeDropIns
import WormholeSyscalls

/// Messages to MMWormhole's listeners while their queue is busy, and while the listeners change.
@Suite struct MMWormholeListeningTests {
  private let group: String
  // The class guards its state, and is not Sendable, as in the original's header.
  nonisolated(unsafe) private let wormhole: MMWormhole
  private let queue = DispatchQueue(label: "busy")

  init() throws {
    try GroupsRoot.use()
    group = "group.test.\(UUID().uuidString)"
    wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: "wormhole")
    wormhole.listenerQueue = queue
  }

  /// Passes messages while the listeners' queue is busy, and runs the body once another object has
  /// received the last message.
  private func passWhileBusy(_ messages: [String], then body: () throws -> Void = {}) throws {
    let other = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: "wormhole")
    other.listenerQueue = DispatchQueue(label: "other")
    let heard = Heard<String>()
    other.listenForMessage(withIdentifier: "m") { heard.add(text($0)) }
    queue.suspend()
    defer { queue.resume() }
    for message in messages { wormhole.passMessageObject(message as NSString, identifier: "m") }
    try heard.wait("the last message") { $0.last == messages.last }
    try body()
  }

  /// As programs do each time that a view appears.
  @Test(.blocking) func listeningAnewLosesNothing() throws {
    let heard = Heard<String>()
    wormhole.listenForMessage(withIdentifier: "m") { heard.add("first \(text($0))") }
    try passWhileBusy(["a"]) {
      wormhole.listenForMessage(withIdentifier: "m") { heard.add("second \(text($0))") }
    }
    try heard.wait("it") { $0 == ["second a"] }
  }

  @Test(.blocking) func listeningWithoutAClosureStops() throws {
    let heard = Heard<String>()
    wormhole.listenForMessage(withIdentifier: "m") { heard.add(text($0)) }
    wormhole.passMessageObject("a" as NSString, identifier: "m")
    try heard.wait("the first message") { $0 == ["a"] }
    wormhole.listenForMessage(withIdentifier: "m", listener: nil)
    try passWhileBusy(["b"])
    queue.sync {}
    #expect(heard.all == ["a"])
  }

  @Test(.blocking) func aReleasedObjectReceivesNoWaitingMessage() throws {
    /// Retained by the listener alone.
    final class Held: Sendable {}
    let heard = Heard<String>()
    for round in 1...10 {
      var gone: MMWormhole? = MMWormhole(
        applicationGroupIdentifier: group, optionalDirectory: "wormhole")
      gone?.listenerQueue = queue
      var held: Held? = Held()
      weak let isHeld = held
      gone?.listenForMessage(withIdentifier: "m") { [held] _ in heard.add("\(round) \(held!)") }
      held = nil
      try passWhileBusy(["a \(round)"]) {
        gone = nil
        try eventually("its listener is let go of") { isHeld == nil }
      }
    }
    queue.sync {}
    #expect(heard.all == [])
  }

  /// The new messenger's messages have numbers of their own, which may be lower.
  @Test(.blocking) func aNewMessengersLowerVersionsAreReceived() throws {
    wormhole.listenerQueue = DispatchQueue(label: "listeners")
    let heard = Heard<String>()
    wormhole.listenForMessage(withIdentifier: "m") { heard.add(text($0)) }
    for number in 1...20 {
      wormhole.passMessageObject("\(number)" as NSString, identifier: "m")
    }
    try heard.wait("the last of the first") { $0.last == "20" }
    wormhole.wormholeMessenger = MMWormholeFileTransiting(
      applicationGroupIdentifier: group, optionalDirectory: "elsewhere")
    for number in 21...22 {
      wormhole.passMessageObject("\(number)" as NSString, identifier: "m")
      try heard.wait("the other's \(number)") { $0.last == "\(number)" }
    }
  }

  @Test(.blocking) func aBusyQueueHearsTheLastMessageOnly() throws {
    let heard = Heard<String>()
    wormhole.listenForMessage(withIdentifier: "m") { heard.add(text($0)) }
    try passWhileBusy((1...100).map { "\($0)" })
    try heard.wait("the last") { $0.last == "100" }
    queue.sync {}
    // The listener may have found the last a little later than the other object has.
    #expect(heard.count <= 3)
  }

  @Test(.blocking, arguments: [false, true])
  func whatWasClearedIsNotHeardAnyMore(isAllCleared: Bool) throws {
    let heard = Heard<String>()
    wormhole.listenForMessage(withIdentifier: "m") { heard.add(text($0)) }
    try passWhileBusy(["secret"]) {
      if isAllCleared {
        wormhole.clearAllMessageContents()
      } else {
        wormhole.clearMessageContents(forIdentifier: "m")
      }
    }
    wormhole.passMessageObject("next" as NSString, identifier: "m")
    try heard.wait("the next") { $0.last == "next" }
    #expect(heard.all == ["next"])
  }

  /// As a clear by another program: only the watch of the channel reports it to the listener.
  @Test(.blocking) func whatAnotherObjectHasClearedIsNotHeardAnyMore() throws {
    let other = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: "wormhole")
    let heard = Heard<String>()
    wormhole.listenForMessage(withIdentifier: "m") { _ in heard.add("the message") }
    queue.suspend()
    let waiting = Result {
      other.passMessageObject(CountedMessage(), identifier: "m")
      try eventually("the listener finds it") { CountedMessage.read > 0 }
      other.clearMessageContents(forIdentifier: "m")
      // A message that no longer waits for the queue is released.
      try? eventually("it waits no longer") { CountedMessage.alive == 0 }
    }
    queue.resume()
    try waiting.get()
    queue.sync {}
    #expect(heard.all == [])
  }

  @Test(.blocking) func whatWaitsForAQueueThatNobodyRunsDoesNotHoldUpAnother() throws {
    let heard = Heard<String>()
    wormhole.listenForMessage(withIdentifier: "m") { heard.add(text($0)) }
    try passWhileBusy(["a"]) {
      wormhole.listenerQueue = DispatchQueue(label: "free")
      wormhole.passMessageObject("b" as NSString, identifier: "m")
      try heard.wait("the next") { $0.last == "b" }
    }
    queue.sync {}
    #expect(heard.all.last == "b")
  }

  @Test(.blocking) func identifiersThatLookAlikeAreListenedToApart() throws {
    let heard = Heard<String>()
    for name in ["ü", "u\u{308}"] {
      let bytes = name.utf8.count
      wormhole.listenForMessage(withIdentifier: name) { heard.add("\(bytes) \(text($0))") }
    }
    for name in ["ü", "u\u{308}"] {
      wormhole.passMessageObject("a" as NSString, identifier: name)
    }
    try heard.wait("both") { Set($0) == ["2 a", "3 a"] }
  }

  @Test(.blocking) func whoHasStoppedStaysSoWhenAnotherMessengerIsSet() throws {
    wormhole.listenerQueue = DispatchQueue(label: "listeners")
    let heard = Heard<String>()
    let names = (0..<20).map { "\($0)" }
    for _ in 0..<10 {
      for name in names {
        wormhole.listenForMessage(withIdentifier: name) { _ in heard.add(name) }
      }
      // The class guards its state.
      nonisolated(unsafe) let messenger = MMWormholeFileTransiting(
        applicationGroupIdentifier: group, optionalDirectory: "wormhole")
      let setting = try WormholeSyscalls.Thread("setting") {
        wormhole.wormholeMessenger = messenger
      }
      for name in names.reversed() { wormhole.stopListeningForMessage(withIdentifier: name) }
      setting.join()
    }
    wormhole.listenForMessage(withIdentifier: "end") { _ in heard.add("end") }
    for name in names + ["end"] {
      wormhole.passMessageObject("a" as NSString, identifier: name)
    }
    try heard.wait("the end") { $0.contains("end") }
    #expect(heard.all == ["end"])
  }

  @Test(.blocking) func spellingsOfADirectoryMeetWithAMessengerOfTheProgramsOwn() throws {
    let heard = Heard<String>()
    let spellings = ["wormhole/", "./wormhole", "wormhole//"].map {
      MMWormhole(applicationGroupIdentifier: group, optionalDirectory: $0)
    }
    for (number, other) in spellings.enumerated() {
      other.listenerQueue = queue
      other.wormholeMessenger = OwnMessenger()
      other.listenForMessage(withIdentifier: "m") { _ in heard.add("\(number)") }
    }
    wormhole.wormholeMessenger = OwnMessenger()
    wormhole.passMessageObject("a" as NSString, identifier: "m")
    try heard.wait("all") { Set($0) == ["0", "1", "2"] }
  }
}

/// A message that counts its objects, for a single test.
final class CountedMessage: NSObject, NSCoding, Sendable {
  private static let counts = Monitor((read: 0, alive: 0))
  /// The number of objects that were read from an archive.
  static var read: Int { counts.withLock { $0.read } }
  /// The number of objects that exist.
  static var alive: Int { counts.withLock { $0.alive } }

  override init() {
    super.init()
    Self.counts.withLock { $0.alive += 1 }
  }

  init?(coder: NSCoder) {
    super.init()
    Self.counts.withLock { counts in
      counts.read += 1
      counts.alive += 1
    }
  }

  deinit { Self.counts.withLock { $0.alive -= 1 } }

  func encode(with coder: NSCoder) {}
}

/// Keeps nothing.
private final class OwnMessenger: MMWormholeTransiting {
  func writeMessageObject(
    _ messageObject: (any NSCoding)?, forIdentifier identifier: String
  ) -> Bool { true }
  func messageObject(forIdentifier identifier: String?) -> (any NSCoding)? { nil }
  func deleteContent(forIdentifier identifier: String?) {}
  func deleteContentForAllMessages() {}
}

private func text(_ message: Any?) -> String { message.map { "\($0)" } ?? "nil" }
