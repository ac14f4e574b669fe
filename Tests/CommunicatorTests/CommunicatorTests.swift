import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import Communicator

/// Communicator on both sides, as two processes.
@Suite struct CommunicatorTests {
  let folder: TemporaryDirectory
  let container: String
  let pairing: Pairing
  /// The lines that each program, by its process ID, was expected to write.
  private let expected = Monitor<[Int32: [String]]>([:])

  init() throws {
    folder = try TemporaryDirectory()
    container = folder.path + "/container"
    pairing = try Pairing(directory: container)
  }

  /// - Parameter program: the program's role; `session` uses no Communicator.
  private func side(
    _ role: String, _ steps: [String], _ program: String = "communicator", watch: String = "watch"
  ) throws -> Running {
    try Running(
      Programs.built("DropInPeer"), [program] + steps,
      environment: [
        "WORMHOLE_ROLE=\(role)", "WORMHOLE_CONTAINER=\(container)", "WORMHOLE_GROUP=",
        "WORMHOLE_WATCH=\(watch)",
      ])
  }

  /// Waits until the program has written these lines, in any order, besides those of earlier waits.
  ///
  /// The program must have written no other line about a message. The number of lines about states
  /// depends on the timing.
  private func wait(_ program: Running, _ lines: [String]) throws {
    let process = program.child.process
    let all = expected.withLock { expected in
      expected[process, default: []] += lines
      return expected[process] ?? []
    }
    var found: [String] = []
    do {
      try eventually("\(lines)") {
        found = try written(by: program)
        return Set(found).isSuperset(of: all) && messages(found).count >= messages(all).count
      }
    } catch {
      Issue.record("expected \(all), found \(found): \(try program.errors)")
    }
    #expect(messages(found) == messages(all))
  }

  private func messages(_ lines: [String]) -> [String] {
    lines.filter { line in
      !["state ", "watch ", "phone ", "reachability "].contains { line.hasPrefix($0) }
    }.sorted()
  }

  private func written(by program: Running) throws -> [String] {
    try program.output.split(separator: "\n").map(String.init)
  }

  @Test(.blocking) func allKindsArrive() throws {
    try pairing.setComplication(enabled: true)
    let kinds = ["immediate", "interactive", "guaranteed", "blob", "context", "complication"]
    let watch = try side("watch", kinds.map { "observe=\($0)" } + ["await=never"])
    let phone = try side(
      "phone",
      [
        "observe=state", "observe=watch", "near", "immediate=1", "interactive=2", "guaranteed=3",
        "context=4", "complication=5", "blobs=1", "await=never",
      ])
    try wait(
      watch,
      [
        "immediate i 1", "interactive q 2", "guaranteed g 3", "context 4", "complication 5",
        "blob same 200001 0",
      ])
    try wait(
      phone,
      ["reply -2", "ended guaranteed", "ended blobs", "complications left 49", "state activated"])
    // The budget changed no other state, and only the budget was reported. Now the complication
    // leaves the face.
    try pairing.setComplication(enabled: false)
    try wait(phone, ["watch 0"])
  }

  /// Observing one type begins the session; content for other types stays until the program
  /// observes the types.
  @Test(.blocking) func nothingIsLostThatCameBeforeItsTypeWasObserved() throws {
    let phone = try side("phone", ["ready", "guaranteed=1", "context=2", "blobs=3", "await=never"])
    let watch = try side(
      "watch",
      [
        "observe=phone", "near", "observe=reachability", "observe=context", "await=context 2",
        "observe=blob", "await=blob same 200001 1", "observe=guaranteed", "await=guaranteed g 1",
        "await=never",
      ])
    try wait(watch, ["context 2", "guaranteed g 1"] + (0..<3).map { "blob same 200001 \($0)" })
    try wait(phone, ["ended guaranteed", "ended blobs", "ended blobs", "ended blobs"])
  }

  /// Content that the process did not deliver is kept for its next run.
  @Test(
    .blocking, arguments: [("complication", "guaranteed g 1"), ("guaranteed", "complication 2")])
  func observingOneTypeTakesNothingOfAnother(observed: String, other: String) throws {
    try pairing.setComplication(enabled: true)
    let phone = try side("phone", ["ready", "guaranteed=1", "complication=2", "await=never"])
    let watch = try side("watch", ["observe=\(observed)", "await=never"])
    try wait(watch, [observed == "guaranteed" ? "guaranteed g 1" : "complication 2"])
    // A message is redelivered if its receiver dies before the acknowledgement.
    let ends = ["ended guaranteed", "complications left 49"]
    let (first, last) = observed == "guaranteed" ? (ends[0], ends[1]) : (ends[1], ends[0])
    try wait(phone, [first])
    try watch.child.send(.kill)
    _ = try watch.outcome()
    let next = try side("watch", ["observe=guaranteed", "observe=complication", "await=never"])
    try wait(next, [other])
    try wait(phone, [last])
  }

  /// One observer begins while the other has read the observers, and has not reported the result.
  @Test(.blocking) func ofTwoWhoObserveAtOnceBothAreServed() throws {
    let communicator = Communicator(WCSession(role: .watch, place: .directory(container)))
    let blob = Blob.observations.add(.communicator) { _ in }
    let (hasLooked, isOver) = (Monitor(false), Monitor(false))
    let first = try WormholeSyscalls.Thread("observer") {
      communicator.chooseKinds {
        let observed = Communicator.observed
        hasLooked.signal { $0 = true }
        // If the second observer does not wait for the first, it is done before the wait ends.
        let _: Void? = isOver.wait(until: .now + .milliseconds(300)) { $0 ? () : nil }
        return observed
      }
    }
    _ = hasLooked.wait(until: .now + patience) { $0 ? true : nil }
    let message = GuaranteedMessage.observations.add(.communicator) { _ in }
    communicator.chooseKinds()
    isOver.signal { $0 = true }
    first.join()
    #expect(communicator.session.takenKinds == [.blob, .userInfo])
    Blob.observations.remove(blob)
    GuaranteedMessage.observations.remove(message)
  }

  @Test(.blocking) func parallelBlobsOfOneNameKeepTheirContents() throws {
    let watch = try side("watch", ["observe=blob", "await=never"])
    let phone = try side("phone", ["near", "blobs=50", "await=never"])
    try wait(watch, (0..<50).map { "blob same 200001 \($0)" })
    try eventually("all ends") {
      try phone.output.split(separator: "\n").filter { $0 == "ended blobs" }.count == 50
    }
  }

  @Test(.blocking) func whatCannotBeReachedIsTold() throws {
    let phone = try side(
      "phone",
      [
        "observe=reachability", "await=reachability", "immediate=1",
        "cancelled=2", "await=never",
      ])
    try wait(
      phone,
      [
        "failed immediate sessionIsNotReachable(minimumReachability: "
          + "Communicator.Reachability.immediatelyReachable, "
          + "actual: Communicator.Reachability.backgroundOnly)", "cancelled",
      ])
    try pairing.unpair()
    try wait(phone, ["reachability notReachable"])
  }

  /// The app does not run, so that the session reports no change of its reachability.
  @Test(.blocking) func aPhoneAppThatIsRemovedIsNoLongerReachable() throws {
    let watch = try side("watch", ["observe=reachability", "await=never"])
    try wait(watch, ["reachability backgroundOnly"])
    #expect(try !written(by: watch).contains("reachability notReachable"))
    try pairing.uninstall(.phone)
    try wait(watch, ["reachability notReachable"])
  }

  /// A message for a type without an observer stays in the queue for the next observer.
  @Test(.blocking) func aMessageWithoutObserverStaysInTheQueue() throws {
    let watch = try side(
      "watch",
      [
        "observe=guaranteed", "observe=context", "unobserve=guaranteed", "say=unobserved",
        "await=never",
      ])
    try wait(watch, ["unobserved"])
    let phone = try side("phone", ["near", "guaranteed=1", "context=2", "await=never"])
    try wait(watch, ["context 2"])
    try watch.child.send(.kill)
    _ = try watch.outcome()
    let next = try side("watch", ["observe=guaranteed", "await=never"])
    try wait(next, ["guaranteed g 1"])
    try wait(phone, ["ended guaranteed"])
  }

  /// An observer is notified of changes only.
  @Test(.blocking) func anUnchangedReachabilityIsNotNotified() throws {
    let phone = try side("phone", ["observe=reachability", "observe=watch", "await=never"])
    let watch = try side("watch", ["near", "say=near", "await=never"])
    try wait(watch, ["near"])
    let near = "reachability immediatelyReachable"
    try eventually("it is near") { try written(by: phone).contains(near) }
    for isOn in [true, false, true] {
      try pairing.setComplication(enabled: isOn)
      try eventually("the watch's change") {
        try written(by: phone).last { $0.hasPrefix("watch") } == (isOn ? "watch 50" : "watch 0")
      }
    }
    let told = try written(by: phone).filter { $0.hasPrefix("reachability") }
    #expect(told.last == near)
    for (last, next) in zip(told, told.dropFirst()) { #expect(last != next) }
  }

  @Test(.blocking) func theSessionContinuesWithAnotherWatch() throws {
    let phone = try side(
      "phone", ["observe=state", "await=state inactive", "near", "guaranteed=1"])
    try wait(phone, ["state activated"])
    try pairing.pair("other")
    let other = try side("watch", ["observe=guaranteed", "await=never"], watch: "other")
    try wait(other, ["guaranteed g 1"])
    let states = try written(by: phone).filter { $0.hasPrefix("state ") }
    #expect(states.prefix(2) == ["state activated", "state inactive"])
    #expect(states.last == "state activated")
  }

  @Test(.blocking) func statesContainTheBudgetAndTheInstallation() throws {
    let steps = ["ready", "say=ready", "await=never"]
    let phone = try side("phone", ["observe=watch"] + steps)
    let watch = try side("watch", ["observe=phone"] + steps)
    for program in [phone, watch] { try wait(program, ["ready"]) }
    try pairing.setComplication(enabled: true)
    try eventually("the budget") { try written(by: phone).contains("watch 50") }
    try pairing.uninstall(.phone)
    try eventually("the removed app") {
      try written(by: watch).contains { $0.hasPrefix("phone ") && $0.contains("notInstalled") }
    }
  }

  /// The session is activated again without a call of the program.
  @Test(.blocking) func theSessionActivatesForAnotherWatch() throws {
    let phone = try side("phone", ["observe=state", "await=never"])
    try wait(phone, ["state activated"])
    try pairing.pair("other")
    try eventually("the second activation") {
      try written(by: phone).count { $0 == "state activated" } == 2
    }
  }

  /// Only immediate messages need a counterpart that runs.
  @Test(.blocking) func guaranteedMessagesNeedNoRunningCounterpart() throws {
    let phone = try side(
      "phone", ["ready", "guaranteed=1", "context=2", "say=sent", "await=never"])
    try wait(phone, ["sent"])
    let watch = try side("watch", ["observe=guaranteed", "observe=context", "await=never"])
    try wait(watch, ["guaranteed g 1", "context 2"])
    try wait(phone, ["ended guaranteed"])
  }

  /// A counterpart that uses `WCSession` directly may send any reply.
  @Test(.blocking) func aReplyOfUnknownFormIsAnError() throws {
    let watch = try side("watch", ["activate", "await=never"], "session")
    let session = WCSession(role: .phone, place: .directory(container))
    defer { session.end() }
    let communicator = Communicator(session)
    try eventually("it is near") { communicator.currentReachability == .immediatelyReachable }
    let ends = Heard<String>()
    communicator.send(
      InteractiveImmediateMessage(identifier: "q", content: ["n": 1]) { ends.add("\($0)") }
    ) { ends.add("\(($0 as NSError).code)") }
    #expect(throws: Never.self) { try ends.wait("its end") { $0 == ["7011"] } }
    _ = watch
  }

  /// A context for an app that is not installed is refused with the reachability.
  @Test(.blocking) func aContextForNoCounterpartIsRefused() throws {
    try pairing.unpair()
    let session = WCSession(role: .phone, place: .directory(container))
    defer { session.end() }
    let communicator = Communicator(session)
    try eventually("it is active") { communicator.currentState == .activated }
    let error = #expect(throws: Communicator.Error.self) {
      try communicator.sync(Context(content: ["n": 1]))
    }
    #expect(
      error
        == .sessionIsNotReachable(minimumReachability: .backgroundOnly, actual: .notReachable))
  }
}
