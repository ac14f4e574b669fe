import Foundation
import Syscalls
import TestSupport
import TestTraits
import Testing

@testable import Communicator

/// Communicator on both sides, as two processes.
@Suite struct CommunicatorTests {
  let folder: TemporaryDirectory
  let container: String
  let pairing: Pairing

  init() throws {
    folder = try TemporaryDirectory()
    container = folder.path + "/container"
    pairing = try Pairing(directory: container)
  }

  private func side(_ role: String, _ steps: [String]) throws -> Running {
    try Running(
      Programs.built("DropInPeer"), ["communicator"] + steps,
      environment: [
        "WORMHOLE_ROLE=\(role)", "WORMHOLE_CONTAINER=\(container)", "WORMHOLE_GROUP=",
      ])
  }

  private func wait(_ program: Running, _ lines: [String]) throws {
    do {
      try eventually("\(lines)") {
        Set(try program.output.split(separator: "\n").map(String.init)).isSuperset(of: lines)
      }
    } catch {
      Issue.record("wanted \(lines), and it wrote: \(try program.output) \(try program.errors)")
    }
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
    // The budget was told as it changed nothing else: the complication goes from the face.
    try pairing.setComplication(enabled: false)
    try wait(phone, ["watch 0"])
  }

  /// Observing one type begins the session; what others are for stays until they are observed.
  @Test(.blocking) func nothingIsLostThatCameBeforeItsTypeWasObserved() throws {
    let phone = try side("phone", ["ready", "guaranteed=1", "context=2", "blobs=3", "await=never"])
    let watch = try side(
      "watch",
      [
        "observe=phone", "near", "observe=reachability", "observe=context", "await=context 2",
        "observe=blob", "await=blob same 200001 1", "observe=guaranteed", "await=guaranteed g 1",
        "await=never",
      ])
    try wait(watch, ["context 2", "guaranteed g 1"])
    try wait(phone, ["ended guaranteed", "ended blobs"])
  }

  /// What it did not hand out is still there for its next life.
  @Test(
    .blocking, arguments: [("complication", "guaranteed g 1"), ("guaranteed", "complication 2")])
  func observingOneTypeTakesNothingOfAnother(observed: String, other: String) throws {
    try pairing.setComplication(enabled: true)
    let phone = try side("phone", ["ready", "guaranteed=1", "complication=2", "await=never"])
    let watch = try side("watch", ["observe=\(observed)", "await=never"])
    try wait(watch, [observed == "guaranteed" ? "guaranteed g 1" : "complication 2"])
    try watch.child.send(.kill)
    _ = try watch.outcome()
    let next = try side("watch", ["observe=guaranteed", "observe=complication", "await=never"])
    try wait(next, [other])
    try wait(phone, ["ended guaranteed", "complications left 49"])
  }

  @Test(.blocking) func ofTwoWhoObserveAtOnceBothAreServed() throws {
    let session = WCSession(role: .watch, place: .directory(container))
    let communicator = Communicator(session)
    // Both begin a round when both are there.
    let arrived = Monitor(0)
    let rounds = 5000
    let wrong = Heard<Int>()
    let observe = { @Sendable (index: Int) in
      func meet(_ number: Int) {
        arrived.withLock { $0 += 1 }
        while arrived.withLock({ $0 }) < 2 * number { Processes.yield() }
      }
      for round in 0..<rounds {
        meet(3 * round + 1)
        let observation =
          index == 0
          ? Blob.observations.add(.communicator) { _ in }
          : GuaranteedMessage.observations.add(.communicator) { _ in }
        communicator.chooseKinds()
        meet(3 * round + 2)
        if session.takenKinds != [.blob, .userInfo] { wrong.add(round) }
        meet(3 * round + 3)
        if index == 0 {
          Blob.observations.remove(observation)
        } else {
          GuaranteedMessage.observations.remove(observation)
        }
        communicator.chooseKinds()
      }
    }
    let threads = try (0...1).map { index in try Syscalls.Thread("observer") { observe(index) } }
    for thread in threads { thread.join() }
    #expect(wrong.count == 0)
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
}
