import Foundation
import MMWormhole
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeDropIns

/// A wormhole whose listeners and messenger change while messages are pending or calls in progress.
@Suite(.blocking) struct WormholeChangeTests {
  private let group: String
  private let queue = DispatchQueue(label: "listeners")
  private let heard = Heard<String>()

  init() throws {
    try GroupsRoot.use()
    group = "group.test.\(UUID().uuidString)"
  }

  /// A transport calls the listener itself, so the message certainly waits.
  @Test func whoHasStoppedReceivesNoPendingMessage() {
    let wormhole = MMWormhole(applicationGroupIdentifier: group)
    wormhole.listenerQueue = queue
    for name in ["stopped", "kept"] {
      wormhole.listenForMessage(withIdentifier: name) { [heard] in
        heard.add("\(name) \($0 ?? "nothing")")
      }
    }
    queue.suspend()
    for name in ["stopped", "kept"] {
      wormhole.notifyListenerForMessage(withIdentifier: name, message: "text" as NSString)
    }
    wormhole.stopListeningForMessage(withIdentifier: "stopped")
    queue.resume()
    queue.sync {}
    #expect(heard.all == ["kept text"])
    wormhole.stopListeningForMessage(withIdentifier: "kept")
  }

  /// Replaces its messenger just after the next look at it, as another thread may do.
  private final class Switching: MMWormhole {
    var next: (any MMWormholeTransiting)?

    override var wormholeMessenger: any MMWormholeTransiting {
      get {
        let now = super.wormholeMessenger
        if let next {
          self.next = nil
          super.wormholeMessenger = next
        }
        return now
      }
      set { super.wormholeMessenger = newValue }
    }
  }

  @Test func aListenerThatStartsWhileTheMessengerIsReplacedHearsTheNewOne() throws {
    let wormhole = Switching(applicationGroupIdentifier: group)
    wormhole.listenerQueue = queue
    wormhole.next = MMWormholeFileTransiting(
      applicationGroupIdentifier: group, optionalDirectory: "elsewhere")
    wormhole.listenForMessage(withIdentifier: "m") { [heard] in heard.add("\($0 ?? "nothing")") }
    #expect(wormhole.next == nil)
    wormhole.passMessageObject("text" as NSString, identifier: "m")
    try heard.wait("the message") { $0 == ["text"] }
    let other = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: "elsewhere")
    #expect(other.message(withIdentifier: "m") as? String == "text")
    wormhole.stopListeningForMessage(withIdentifier: "m")
  }

  /// Does something after its messenger was replaced, and before it listens to the new one.
  private final class Pausing: MMWormhole {
    var pause: (() -> Void)?

    override var wormholeMessenger: any MMWormholeTransiting {
      get {
        if let pause {
          self.pause = nil
          pause()
        }
        return super.wormholeMessenger
      }
      set { super.wormholeMessenger = newValue }
    }
  }

  /// The new messenger's versions are lower.
  @Test func aLateMessageOfTheEarlierMessengerHidesNoneOfTheNewOne() throws {
    let wormhole = Pausing(applicationGroupIdentifier: group)
    wormhole.listenerQueue = queue
    wormhole.listenForMessage(withIdentifier: "m") { [heard] in heard.add("\($0 ?? "nothing")") }
    let other = MMWormhole(applicationGroupIdentifier: group)
    wormhole.pause = { [heard] in
      for number in 1...20 { other.passMessageObject("\(number)" as NSString, identifier: "m") }
      #expect(throws: Never.self) { try heard.wait("the last") { $0.last == "20" } }
    }
    wormhole.wormholeMessenger = MMWormholeFileTransiting(
      applicationGroupIdentifier: group, optionalDirectory: "elsewhere")
    wormhole.passMessageObject("new" as NSString, identifier: "m")
    try heard.wait("the new messenger's") { $0.last == "new" }
    wormhole.stopListeningForMessage(withIdentifier: "m")
  }

  /// The listener knows which messages of the earlier messenger's channel it has heard.
  @Test func aListenerKeepsNoContainerOfAnEarlierMessenger() throws {
    let wormhole = MMWormhole(applicationGroupIdentifier: group)
    wormhole.listenerQueue = queue
    wormhole.listenForMessage(withIdentifier: "m") { [heard] in heard.add("\($0 ?? "nothing")") }
    wormhole.passMessageObject("first" as NSString, identifier: "m")
    try heard.wait("the message") { $0 == ["first"] }
    let place = URL(fileURLWithPath: try ContainerLocation(group: group).container)
      .deletingLastPathComponent()
    weak let container = try SharedOpenings.group(group)
    #expect(container != nil)
    try FileManager.default.moveItem(at: place, to: place.appendingPathExtension("away"))
    wormhole.wormholeMessenger = MMWormholeFileTransiting(applicationGroupIdentifier: group)
    wormhole.passMessageObject("second" as NSString, identifier: "m")
    try heard.wait("the message in the next container") { $0 == ["first", "second"] }
    try eventually("the container is released") { container == nil }
    wormhole.stopListeningForMessage(withIdentifier: "m")
  }

  /// The messenger has opened a channel for each of the two messages, and passes one of them again.
  @Test func aMessengerKeepsNothingOfARemovedContainer() throws {
    let wormhole = MMWormhole(applicationGroupIdentifier: group)
    for name in ["one", "other"] {
      wormhole.passMessageObject("first" as NSString, identifier: name)
    }
    weak let container = try SharedOpenings.group(group)
    #expect(container != nil)
    try removeTree(ContainerLocation(group: group).container)
    wormhole.passMessageObject("second" as NSString, identifier: "one")
    #expect(wormhole.message(withIdentifier: "one") as? String == "second")
    try? eventually("the container is released") { container == nil }
    #expect(container == nil)
  }

  /// The session of this process is not active, so each request fails.
  @Test func whatASessionRefusesIsToldWithItsIdentifier() {
    let wormhole = MMWormhole(
      applicationGroupIdentifier: group, optionalDirectory: nil, transitingType: .sessionContext)
    let failures = Heard<WormholeError>()
    wormhole.failureHandler = { error in
      if let error = error as? WormholeError { failures.add(error) }
    }
    wormhole.passMessageObject("text" as NSString, identifier: "name")
    wormhole.clearMessageContents(forIdentifier: "other")
    #expect(failures.all.map(\.code) == [.rejected, .rejected])
    #expect(failures.all.map(\.subject) == ["name", "other"])
    let texts = failures.all.map(\.description)
    let starts = ["cannot pass message 'name': ", "cannot clear message 'other': "]
    #expect(texts.count == starts.count)
    for (text, start) in zip(texts, starts) {
      #expect(text.hasPrefix(start) && text.count > start.count, "\(text)")
    }
  }
}
