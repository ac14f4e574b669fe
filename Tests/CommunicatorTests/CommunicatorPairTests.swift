import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeDropIns
import WormholeSyscalls

@testable import Communicator

/// Two communicators of one process, and content that no communicator has sent.
///
/// One test at a time, because the observers of a type belong to the whole process.
@Suite(.serialized, .blocking) struct CommunicatorPairTests {
  private let folder: TemporaryDirectory
  private let container: String
  private let pairing: Pairing
  private let queue = DispatchQueue(label: "observers")
  /// Other tests of the process may send messages too.
  private let name = UUID().uuidString

  init() throws {
    folder = try TemporaryDirectory()
    container = folder.path + "/container"
    pairing = try Pairing(directory: container)
  }

  /// Both sides, each with a session of its own.
  private final class Sides {
    let phone: Communicator
    let watch: Communicator

    init(_ container: String) throws {
      phone = Communicator(WCSession(role: .phone, place: .directory(container)))
      watch = Communicator(WCSession(role: .watch, place: .directory(container)))
      try eventually("both are near") { [phone, watch] in
        // Asked for each, because the question activates the session.
        let both = [phone.currentReachability, watch.currentReachability]
        return both == [.immediatelyReachable, .immediatelyReachable]
      }
    }

    deinit {
      phone.session.end()
      watch.session.end()
    }
  }

  /// A delegate that receives nothing.
  private final class Quiet: NSObject, WCSessionDelegate {
    func session(
      _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
      error: (any Error)?
    ) {}
  }

  // MARK: Messages

  @Test func whatIsPackedIsUnpackedAndNothingElse() {
    func isNone(_ value: Any?) -> Bool { value == nil }
    let blob = Blob(identifier: "b", content: Data([1, 2]))
    #expect(blob.packed.keys.sorted() == ["content", "identifier"])
    let plain = Blob(packed: blob.packed)
    #expect(plain?.content == Data([1, 2]))
    #expect(isNone(plain?.metadata))
    let described = Blob(packed: Blob(identifier: "b", content: Data(), metadata: ["k": 1]).packed)
    #expect(described?.identifier == "b")
    #expect(described?.metadata?["k"] as? Int == 1)
    let texts = ["identifier": "b", "content": "text"]
    #expect(isNone(Blob(packed: texts)))
    #expect(isNone(Blob(packed: ["content": Data()])))
    #expect(isNone(GuaranteedMessage(packed: texts)))
    #expect(isNone(GuaranteedMessage(packed: blob.packed)))
    let info = ComplicationInfo(content: ["n": 1])
    #expect(info.packed.keys.sorted() == ["__complication_info__"])
    #expect(ComplicationInfo(packed: info.packed)?.content["n"] as? Int == 1)
    #expect(isNone(ComplicationInfo(packed: ["n": 1])))
    #expect(isNone(ComplicationInfo(packed: ["__complication_info__": 1])))
    #expect(ImmediateMessage("i", content: ["n": 1]).identifier == "i")
    #expect(ImmediateMessage("i", content: ["n": 1]).content["n"] as? Int == 1)
  }

  @Test func aReplyReturnsToItsQuestion() throws {
    let sides = try Sides(container)
    let (heard, name) = (Heard<String>(), name)
    let immediate = ImmediateMessage.observations.add(queue) { message in
      guard message.identifier == name else { return }
      heard.add("immediate \(message.content["n"] ?? "nothing")")
    }
    let interactive = InteractiveImmediateMessage.observations.add(queue) { message in
      guard message.identifier == name else { return }
      let number = message.content["n"] as? Int ?? 0
      heard.add("question \(number)")
      message.reply(ImmediateMessage("answer", content: ["n": -number]))
    }
    defer {
      ImmediateMessage.observations.remove(immediate)
      InteractiveImmediateMessage.observations.remove(interactive)
    }
    sides.phone.send(ImmediateMessage(name, content: ["n": 1])) { heard.add("\($0)") }
    // The reply to a message without a closure is ignored.
    sides.phone.send(InteractiveImmediateMessage(identifier: name, content: ["n": 2])) {
      heard.add("\($0)")
    }
    let question = InteractiveImmediateMessage(identifier: name, content: ["n": 3]) { reply in
      heard.add("\(reply.identifier) \(reply.content["n"] ?? "nothing")")
    }
    sides.phone.send(question) { heard.add("\($0)") }
    try heard.wait("the answer") { $0.contains("answer -3") }
    #expect(heard.all == ["immediate 1", "question 2", "question 3", "answer -3"])
  }

  /// A program that uses `WCSession` itself may send anything.
  @Test func aMessageOfUnknownFormIsReportedToItsSender() throws {
    let watch = Communicator(WCSession(role: .watch, place: .directory(container)))
    let phone = WCSession(role: .phone, place: .directory(container))
    defer {
      phone.end()
      watch.session.end()
    }
    let quiet = Quiet()
    phone.delegate = quiet
    phone.activate()
    try eventually("they are near") {
      watch.currentReachability == .immediatelyReachable && phone.isReachable
    }
    let contents: [[String: Any]] = [
      [:], ["identifier": name], ["content": ["n": 1]],
      ["identifier": 1, "content": ["n": 1] as [String: Any]],
      ["identifier": name, "content": "text"],
    ]
    let ends = Heard<String>()
    for content in contents {
      phone.sendMessage(content, replyHandler: nil) {
        ends.add("\(($0 as NSError).code) \($0.localizedDescription)")
      }
      phone.sendMessage(content) { _ in
        ends.add("reply")
      } errorHandler: {
        ends.add("\(($0 as NSError).code) \($0.localizedDescription)")
      }
    }
    try ends.wait("all ends") { $0.count == contents.count * 2 }
    let reason = "the delegate of the counterpart does not implement a message of Communicator"
    for end in ends.all {
      #expect(end.hasPrefix("7014 "))
      #expect(end.contains(reason))
    }
    withExtendedLifetime(quiet) {}
  }

  /// The counterpart is near, and has no method for the message.
  @Test func anImmediateMessageThatFailsLaterIsReportedToItsSender() throws {
    let phone = Communicator(WCSession(role: .phone, place: .directory(container)))
    let watch = WCSession(role: .watch, place: .directory(container))
    defer {
      watch.end()
      phone.session.end()
    }
    let quiet = Quiet()
    watch.delegate = quiet
    watch.activate()
    try eventually("it is near") { phone.currentReachability == .immediatelyReachable }
    let ends = Heard<Int>()
    phone.send(ImmediateMessage(name)) { ends.add(($0 as NSError).code) }
    try ends.wait("its end") { !$0.isEmpty }
    // Null is no value of a property list.
    phone.send(ImmediateMessage(name, content: ["n": NSNull()])) {
      ends.add(($0 as NSError).code)
    }
    try ends.wait("the second end") { $0.count > 1 }
    #expect(ends.all == [7014, 7010])
    withExtendedLifetime(quiet) {}
  }

  /// The completion of a transfer is called, also if its container is gone.
  ///
  /// Until then the transfer keeps its place in memory: a later transfer in the same place would
  /// end with the completion of the earlier one.
  @Test func aTransferThatHasACompletionKeepsItsPlace() throws {
    let ends = Heard<String>()
    let phone = Communicator(WCSession(role: .phone, place: .directory(container)))
    defer { phone.session.end() }
    try eventually("the phone is active") { phone.currentReachability == .backgroundOnly }
    let message = GuaranteedMessage(identifier: name)
    weak let transfer =
      phone.send(message) { result in
        if case .success = result { ends.add("success") } else { ends.add("failure") }
      } as? WCSessionUserInfoTransfer
    #expect(transfer?.isTransferring == true)
    try FileManager.default.moveItem(atPath: container, toPath: container + ".away")
    phone.session.activate()
    try eventually("the phone is active in a new container") {
      FileManager.default.fileExists(atPath: container)
        && phone.currentReachability == .backgroundOnly
    }
    #expect(phone.session.outstandingUserInfoTransfers.isEmpty)
    try ends.wait("its end") { $0 == ["failure"] }
  }

  /// The end is reported on another thread, while the sending thread has not continued yet.
  @Test func aTransferThatEndsBeforeItsCompletionIsStoredCallsTheCompletion() throws {
    let phone = Communicator(WCSession(role: .phone, place: .directory(container)))
    defer { phone.session.end() }
    try eventually("the phone is active") { phone.currentReachability == .backgroundOnly }
    let (session, delegate, ends) = (phone.session, SessionDelegate(), Heard<Bool>())
    let (sent, isOver) = (Monitor(WCSessionUserInfoTransfer?.none), Monitor(false))
    let ending = try WormholeSyscalls.Thread("its end") {
      guard let transfer = sent.wait(until: .now + patience, { $0 }) else { return }
      delegate.session(session, didFinish: transfer, error: nil)
      isOver.signal { $0 = true }
    }
    let completion = Handler<Result<Void, any Error>> { result in
      if case .success = result { ends.add(true) } else { ends.add(false) }
    }
    let transfer = delegate.keep(completion) {
      let transfer = session.transferUserInfo(["n": 1])
      sent.signal { $0 = transfer }
      // If the end does not wait for the completion, the end is over before this wait.
      let _: Void? = isOver.wait(until: .now + .milliseconds(300)) { $0 ? () : nil }
      return transfer
    }
    ending.join()
    #expect(transfer.isTransferring)
    try ends.wait("the completion") { $0 == [true] }
  }

  /// Each call fails with the reachability that it requires, and returns no object to cancel.
  @Test func nothingIsSentToAnAppThatIsNotInstalled() throws {
    try pairing.uninstall(.watch)
    let phone = Communicator(WCSession(role: .phone, place: .directory(container)))
    defer { phone.session.end() }
    try eventually("the phone is active") { phone.currentState == .activated }
    let near = Communicator.Error.sessionIsNotReachable(
      minimumReachability: .immediatelyReachable, actual: .notReachable)
    let known = Communicator.Error.sessionIsNotReachable(
      minimumReachability: .backgroundOnly, actual: .notReachable)
    let ends = Heard<String>()
    phone.send(ImmediateMessage(name)) {
      ends.add("immediate \(($0 as? Communicator.Error) == near)")
    }
    let question = InteractiveImmediateMessage(identifier: name) { _ in ends.add("reply") }
    phone.send(question) { ends.add("interactive \(($0 as? Communicator.Error) == near)") }
    let message = phone.send(GuaranteedMessage(identifier: name)) { result in
      guard case .failure(let error) = result else { return ends.add("guaranteed") }
      ends.add("guaranteed \((error as? Communicator.Error) == known)")
    }
    let blob = phone.transfer(Blob(identifier: name, content: Data())) { result in
      guard case .failure(let error) = result else { return ends.add("blob") }
      ends.add("blob \((error as? Communicator.Error) == known)")
    }
    let info = phone.transfer(ComplicationInfo(content: ["n": 1])) { result in
      guard case .failure(let error) = result else { return ends.add("complication") }
      ends.add("complication \((error as? Communicator.Error) == known)")
    }
    let areSent = [message != nil, blob != nil, info != nil]
    #expect(areSent == [false, false, false])
    try ends.wait("all ends") { $0.count == 5 }
    #expect(
      ends.all.sorted() == [
        "blob true", "complication true", "guaranteed true", "immediate true", "interactive true",
      ])
  }

  @Test func aBlobArrivesWithItsMetadata() throws {
    let sides = try Sides(container)
    let (heard, ends, name) = (Heard<String>(), Heard<String>(), name)
    let observation = Blob.observations.add(queue) { blob in
      guard blob.identifier == name else { return }
      heard.add("\(Array(blob.content)) \(blob.metadata?["k"] ?? "nothing")")
    }
    defer { Blob.observations.remove(observation) }
    sides.watch.chooseKinds { [.blob] }
    let blobs = [
      Blob(identifier: name, content: Data([1, 2]), metadata: ["k": "v"]),
      Blob(identifier: name, content: Data([3])),
    ]
    for blob in blobs {
      let transfer = sides.phone.transfer(blob: blob) { result in
        if case .success = result { ends.add("success") } else { ends.add("failure") }
      }
      let isSent = transfer != nil
      #expect(isSent)
    }
    try heard.wait("both") { $0 == ["[1, 2] v", "[3] nothing"] }
    try ends.wait("both ends") { $0 == ["success", "success"] }
  }

  @Test func aContextIsPendingUntilItsKindIsTaken() throws {
    let sides = try Sides(container)
    #expect(sides.phone.mostRecentlySentContext.content.isEmpty)
    #expect(!sides.watch.hasPendingDataToBeReceived)
    try sides.phone.sync(Context(content: ["n": 4]))
    #expect(sides.phone.mostRecentlySentContext.content["n"] as? Int == 4)
    try eventually("it is pending") { sides.watch.hasPendingDataToBeReceived }
    #expect(sides.watch.mostRecentlyReceivedContext.content.isEmpty)
    sides.watch.chooseKinds { [.context] }
    try eventually("it is received") {
      sides.watch.mostRecentlyReceivedContext.content["n"] as? Int == 4
    }
    #expect(sides.watch.mostRecentlyReceievedContext.content["n"] as? Int == 4)
    try eventually("nothing is pending") { !sides.watch.hasPendingDataToBeReceived }
    #expect(sides.watch.mostRecentlySentContext.content.isEmpty)
    #expect(sides.phone.mostRecentlyReceivedContext.content.isEmpty)
  }

  // MARK: States

  @Test func thePhoneKnowsWhatItsWatchLacks() throws {
    let sides = try Sides(container)
    let told = Heard<WatchState>()
    let observation = WatchState.observations.add(queue) { told.add($0) }
    defer { WatchState.observations.remove(observation) }
    try pairing.setComplication(enabled: true)
    try eventually("the complication") {
      sides.phone.currentWatchState.numberOfComplicationUpdatesAvailableToday == 50
    }
    let full = sides.phone.currentWatchState
    let directory = try #require(sides.phone.session.watchDirectoryURL)
    let enabled = WatchState.AppState.ComplicationState.enabled(numberOfUpdatesAvailableToday: 50)
    #expect(full == .paired(.installed(enabled, directory)))
    #expect(full.appState == .installed(enabled, directory))
    #expect(full.complicationState == enabled)
    try told.wait("the observer") { $0.contains(full) }
    try pairing.setComplication(enabled: false)
    try told.wait("the complication is gone") {
      $0.contains(.paired(.installed(.notEnabled, directory)))
    }
    #expect(sides.phone.currentWatchState.complicationState == .notEnabled)
    #expect(sides.phone.currentWatchState.numberOfComplicationUpdatesAvailableToday == 0)
    try pairing.uninstall(.watch)
    try told.wait("the app is gone") { $0.contains(.paired(.notInstalled)) }
    let missing = sides.phone.currentWatchState
    #expect(missing == .paired(.notInstalled))
    #expect(missing.appState == .notInstalled)
    #expect(missing.complicationState == .notEnabled)
    #expect(sides.phone.currentReachability == .notReachable)
    try pairing.unpair()
    #expect(sides.phone.currentWatchState == .notPaired)
    #expect(WatchState.notPaired.appState == .notInstalled)
    #expect(WatchState.notPaired.complicationState == .notEnabled)
    #expect(WatchState.notPaired.numberOfComplicationUpdatesAvailableToday == 0)
  }

  @Test func theWatchKnowsWhatItsPhoneLacks() throws {
    let watch = Communicator(WCSession(role: .watch, place: .directory(container)))
    defer { watch.session.end() }
    // The first use activates the session.
    try eventually("it is active") { watch.currentPhoneState == .paired(.installed) }
    let told = Heard<PhoneState>()
    let observation = PhoneState.observations.add(queue) { told.add($0) }
    defer { PhoneState.observations.remove(observation) }
    try pairing.uninstall(.phone)
    try told.wait("the app is gone") { $0.contains(.paired(.notInstalled)) }
    #expect(watch.currentPhoneState == .paired(.notInstalled))
    #expect(watch.currentReachability == .notReachable)
    try pairing.unpair()
    #expect(watch.currentPhoneState == .notPaired)
  }
}
