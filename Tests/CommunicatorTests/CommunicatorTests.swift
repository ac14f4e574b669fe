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

  /// The one begins while the other has looked at who observes, and has not said it yet.
  @Test(.blocking) func ofTwoWhoObserveAtOnceBothAreServed() throws {
    let communicator = Communicator(WCSession(role: .watch, place: .directory(container)))
    let blob = Blob.observations.add(.communicator) { _ in }
    let (hasLooked, isOver) = (Monitor(false), Monitor(false))
    let first = try Syscalls.Thread("observer") {
      communicator.chooseKinds {
        let observed = Communicator.observed
        hasLooked.signal { $0 = true }
        // If the other does not wait for this one it is through by then.
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
}
