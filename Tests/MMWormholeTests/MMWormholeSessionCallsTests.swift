import Foundation
import MMWormhole
import TestSupport
import TestTraits
import Testing
import WatchConnectivity
import Wormhole

/// The calls that a watch session makes, and what a wormhole keeps of its settings.
@Suite(.blocking) struct MMWormholeSessionCallsTests {
  private let group: String
  private let queue = DispatchQueue(label: "listeners")
  private let heard = Heard<String>()

  init() throws {
    try GroupsRoot.use()
    group = "group.test.\(UUID().uuidString)"
  }

  /// An object beside the only one of the process, which other tests use at the same time.
  private func session() -> MMWormholeSession {
    let session = MMWormholeSession(
      applicationGroupIdentifier: nil, optionalDirectory: nil, transitingType: .sessionContext)
    session.listenerQueue = queue
    return session
  }

  private var all: [String] {
    queue.sync {}
    return heard.all
  }

  /// All messages that are sent as files arrive, equal ones too.
  @Test func whatArrivesAsAFileReachesItsListenerEachTime() {
    let session = session()
    session.listenForMessage(withIdentifier: "m") { [heard] in heard.add("\($0 ?? "nothing")") }
    let message: [String: Any] = ["MMWormhole.message": "text", "number": 0]
    for _ in 1...2 { session.session(.default, didReceiveUserInfo: ["m": message]) }
    #expect(all == ["text", "text"])
    // Values of the program's own are not messages.
    session.session(.default, didReceiveUserInfo: ["m": "text"])
    session.session(.default, didReceiveUserInfo: ["m": ["MMWormhole.message": "text"]])
    session.session(.default, didReceiveUserInfo: ["m": ["number": 1]])
    session.session(.default, didReceiveUserInfo: ["other": message])
    #expect(all == ["text", "text"])
  }

  /// A damaged archive keeps no other message of the same content.
  @Test func aMessageThatCannotBeReadStopsNoOther() {
    let session = session()
    for name in ["broken", "whole"] {
      session.listenForMessage(withIdentifier: name) { [heard] in
        heard.add("\(name) \($0 ?? "nothing")")
      }
    }
    let archive: [String: Any] = ["MMWormhole.archive": Data([1, 2, 3])]
    session.session(
      .default,
      didReceiveUserInfo: [
        "broken": ["MMWormhole.message": archive, "number": 1] as [String: Any],
        "whole": ["MMWormhole.message": "text", "number": 1] as [String: Any],
      ])
    #expect(all == ["whole text"])
  }

  /// As with messages that arrive in the group's files.
  @Test func aMessageThatCannotBeReadReachesTheFailureHandler() {
    let session = session()
    let failures = Heard<String>()
    session.failureHandler = { failures.add("\($0)") }
    session.listenForMessage(withIdentifier: "m") { [heard] in heard.add("\($0 ?? "nothing")") }
    let archive: [String: Any] = ["MMWormhole.archive": Data([1, 2, 3])]
    let message: [String: Any] = ["MMWormhole.message": archive, "number": 1]
    session.session(.default, didReceiveUserInfo: ["m": message])
    #expect(failures.count == 1)
    #expect(failures.all.first?.contains("NSKeyedUnarchiver refuses the archive") == true)
    #expect(all == [])
  }

  @Test func aTransportMayCallAListenerItself() {
    let session = session()
    session.listenForMessage(withIdentifier: "m") { [heard] in heard.add("\($0 ?? "nothing")") }
    session.notifyListenerForMessage(withIdentifier: "m", message: "text" as NSString)
    session.notifyListenerForMessage(withIdentifier: "m", message: nil)
    session.notifyListenerForMessage(withIdentifier: nil, message: "no name" as NSString)
    session.notifyListenerForMessage(withIdentifier: "other", message: "other" as NSString)
    #expect(all == ["text", "nothing"])
    #expect(session.listenerQueue === queue)
  }

  private static let mainKey = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  private static func place() -> String {
    DispatchQueue.getSpecific(key: mainKey) == true ? "main" : "elsewhere"
  }

  /// As a view that disappears, and appears again.
  @Test func whoListensAnewAfterAStopHearsNoEarlierMessage() {
    let session = session()
    session.listenForMessage(withIdentifier: "m") { [heard] _ in heard.add("first") }
    queue.suspend()
    session.notifyListenerForMessage(withIdentifier: "m", message: "before" as NSString)
    session.stopListeningForMessage(withIdentifier: "m")
    session.listenForMessage(withIdentifier: "m") { [heard] in heard.add("\($0 ?? "nothing")") }
    session.notifyListenerForMessage(withIdentifier: "m", message: "after" as NSString)
    queue.resume()
    #expect(all == ["after"])
  }

  /// The queue of the earlier closure stays busy: nothing of the new closure's depends on it.
  @Test(arguments: [false, true])
  func aWaitingMessageReachesTheNewClosureAtItsOwnPlace(isSession: Bool) throws {
    let wormhole: MMWormhole = isSession ? session() : MMWormhole(applicationGroupIdentifier: group)
    wormhole.listenerQueue = queue
    wormhole.listenForMessage(withIdentifier: "m") { [heard] _ in heard.add("first") }
    queue.suspend()
    wormhole.notifyListenerForMessage(withIdentifier: "m", message: "text" as NSString)
    wormhole.listenForMessage(withIdentifier: "m") { @MainActor [heard] _ in
      heard.add(Self.place())
    }
    let isHeard = (try? heard.wait("the message") { $0 == ["main"] }) != nil
    queue.resume()
    #expect(isHeard)
    #expect(all == ["main"])
    wormhole.stopListeningForMessage(withIdentifier: "m")
  }

  /// As files all messages arrive, in order, whichever closure hears them.
  @Test func allWaitingMessagesReachTheNewClosureInOrder() {
    let session = session()
    session.listenForMessage(withIdentifier: "m") { [heard] _ in heard.add("first") }
    queue.suspend()
    for number in 1...20 {
      session.notifyListenerForMessage(withIdentifier: "m", message: "\(number)" as NSString)
    }
    session.listenForMessage(withIdentifier: "m") { [heard] in heard.add("\($0 ?? "nothing")") }
    queue.resume()
    #expect(all == (1...20).map { "\($0)" })
  }

  /// Counts the closures, as a program's subclass may do.
  private final class Counting: MMWormholeSession {
    var closures = 0

    override func listenForMessage(
      withIdentifier identifier: String?, listener: ((Any?) -> Void)?
    ) {
      closures += 1
      super.listenForMessage(withIdentifier: identifier) { listener?($0) }
    }
  }

  @Test func anOverrideThatCallsItsSuperclassIsHeard() {
    let counting = Counting(
      applicationGroupIdentifier: nil, optionalDirectory: nil, transitingType: .sessionContext)
    let session: MMWormholeSession = counting
    session.listenerQueue = queue
    session.listenForMessage(withIdentifier: "m") { [heard] in heard.add("\($0 ?? "nothing")") }
    session.notifyListenerForMessage(withIdentifier: "m", message: "text" as NSString)
    #expect(all == ["text"])
    session.stopListeningForMessage(withIdentifier: "m")
    session.notifyListenerForMessage(withIdentifier: "m", message: "late" as NSString)
    #expect(all == ["text"])
    #expect(counting.closures == 1)
  }

  /// The session must not end with the change of watches.
  @Test func aDeactivatedSessionIsActivatedAgain() throws {
    let folder = try TemporaryDirectory()
    let container = folder.path + "/container"
    _ = try Pairing(directory: container)
    let watched = WCSession(role: .phone, place: .directory(container))
    defer { watched.end() }
    let session = session()
    watched.delegate = session
    session.sessionDidDeactivate(watched)
    try eventually("it is active") { watched.activationState == .activated }
    withExtendedLifetime(session) {}
  }

  @Test func aWormholeKeepsItsQueueAndItsHandler() {
    let wormhole = MMWormhole(applicationGroupIdentifier: group)
    #expect(wormhole.listenerQueue.label == DispatchQueue.main.label)
    wormhole.listenerQueue = queue
    #expect(wormhole.listenerQueue === queue)
    func hasHandler() -> Bool { wormhole.failureHandler != nil }
    #expect(!hasHandler())
    wormhole.failureHandler = { [heard] in heard.add("\($0)") }
    #expect(hasHandler())
    wormhole.failureHandler = nil
    #expect(!hasHandler())
    // Without a handler the failure goes to the log, and not to the previous handler.
    struct Size {}
    let sent: NSDictionary = ["size": Size()]
    wormhole.passMessageObject(sent, identifier: "m")
    #expect(all == [])
    #expect(wormhole.message(withIdentifier: "m") == nil)
  }

  /// The value of a channel in which another program has put a damaged archive.
  private struct Damaged: Codable, Sendable {
    var archive = Data([1, 2, 3])

    enum CodingKeys: String, CodingKey { case archive = "MMWormhole.archive" }
  }

  @Test func aListenerHearsTheMessageAfterADamagedArchive() throws {
    let wormhole = MMWormhole(applicationGroupIdentifier: group)
    wormhole.listenerQueue = queue
    let failures = Heard<String>()
    wormhole.failureHandler = { failures.add("\($0)") }
    wormhole.listenForMessage(withIdentifier: "m") { [heard] in heard.add("\($0 ?? "nothing")") }
    let container = try SharedContainer(group: group)
    try container.channel("MMWormhole/m", of: Damaged.self).put(Damaged())
    try failures.wait("the failure") { $0.count == 1 }
    #expect(failures.all[0].contains("NSKeyedUnarchiver refuses the archive in this program"))
    #expect(all == [])
    wormhole.passMessageObject("next" as NSString, identifier: "m")
    try heard.wait("the next") { $0 == ["next"] }
    #expect(failures.count == 1)
    wormhole.stopListeningForMessage(withIdentifier: "m")
  }
}
