import Foundation
import TestSupport
import TestTraits
import Testing
import WatchConnectivity
import Wormhole
import WormholeSyscalls

/// The table of transfers, between two processes, in both directions.
@Suite(.notSanitized("the apps run in processes of their own")) struct ProcessTests {
  private let processes: SideProcesses
  private var folder: TemporaryDirectory { processes.folder }
  private var container: String { processes.container }
  private var pairing: Pairing { processes.pairing }

  init() throws {
    processes = try SideProcesses()
    try processes.folder.write("content", to: "a.txt")
  }

  private func side(_ role: String, _ steps: [String]) throws -> Running {
    try processes.start(role, steps)
  }

  private func wait(_ program: Running, _ lines: [String]) throws {
    try processes.wait(program, lines)
  }

  private func other(_ role: String) -> String { role == "phone" ? "watch" : "phone" }

  private var all: [String] {
    ["info=1", "context=2", "message=3", "question=4", "file=\(folder.path)/a.txt"]
  }

  private let guaranteed = ["info n=1", "context n=2", "file a.txt content"]
  private let ends = ["finished n=1 ok", "finished file a.txt ok"]

  /// Most apps ask only whether a session is supported, and do nothing without one.
  @Test(
    .blocking,
    arguments: [
      (nil, "WORMHOLE_ROLE is not set"), ("fone", "WORMHOLE_ROLE is 'fone'"),
      ("phone", "neither WORMHOLE_CONTAINER nor WORMHOLE_GROUP is set"),
    ]) func aMissingOrWrongRoleIsOneLineOnStandardError(_ role: String?, _ reason: String) throws
  {
    let peer = try Running(
      Programs.built("DropInPeer"), ["is-supported"],
      environment: ["WORMHOLE_ROOT=\(folder.path)"]
        + (role.map { ["WORMHOLE_ROLE=\($0)"] } ?? []))
    let outcome = try peer.outcome()
    #expect(outcome.output == "false\nfalse\n")
    #expect(outcome.errors.contains(reason))
    #expect(outcome.errors.split(separator: "\n").count == 1)
  }

  @Test(.blocking, arguments: ["phone", "watch"])
  func theReceiverRuns(sender: String) throws {
    let receiver = try side(other(sender), ["activate", "await=never"])
    try wait(receiver, ["activated 2"])
    let program = try side(sender, ["activate"] + all + ["await=never"])
    try wait(receiver, guaranteed + ["message n=3", "question n=4"])
    try wait(program, ends + ["reply n=-4"])
    #expect(try !program.output.contains("failed"))
  }

  @Test(.blocking, arguments: ["phone", "watch"])
  func theReceiverIsStartedLater(sender: String) throws {
    let program = try side(sender, ["activate"] + all + ["await=never"])
    try wait(program, ["message failed 7007", "question failed 7007"])
    let receiver = try side(other(sender), ["activate", "await=never"])
    try wait(receiver, guaranteed)
    try wait(program, ends)
    #expect(try !receiver.output.contains("message") && !receiver.output.contains("question"))
  }

  @Test(.blocking, arguments: ["phone", "watch"])
  func theSenderIsKilledRightAfterTheCalls(sender: String) throws {
    let steps = all.filter { !$0.hasPrefix("message") && !$0.hasPrefix("question") }
    let killed = try side(sender, ["activate"] + steps + ["die"])
    #expect(try killed.outcome().status != .exited(0))
    let receiver = try side(other(sender), ["activate", "await=never"])
    try wait(receiver, guaranteed)
    // The next run of the sender is notified of the outcomes.
    let next = try side(sender, ["activate", "await=never"])
    try wait(next, ends)
  }

  @Test(.blocking, arguments: ["info", "file", "context"])
  func theReceiverIsKilledInTheCallback(of kind: String) throws {
    let program = try side("phone", ["activate"] + all + ["await=never"])
    let killed = try side("watch", ["die-in=\(kind)", "activate", "await=never"])
    #expect(try killed.outcome().status != .exited(0))
    let receiver = try side("watch", ["activate", "await=never"])
    let line = guaranteed.first { $0.hasPrefix(kind) }!
    try wait(receiver, [line])
    try wait(program, ends)
    // All messages that were not handled before are delivered, in their order.
    let heard = try (killed.output + receiver.output).split(separator: "\n").map(String.init)
    #expect(Set(heard).isSuperset(of: guaranteed))
  }

  @Test(.blocking, arguments: [("question", 7011), ("message", 7014)])
  func aMessageWhoseReceiverIsKilledInTheCallbackFails(kind: String, code: Int) throws {
    let receiver = try side("watch", ["die-in=\(kind)", "activate", "await=never"])
    try wait(receiver, ["activated 2"])
    let program = try side("phone", ["activate", "\(kind)=1", "await=never"])
    try wait(program, ["\(kind) failed \(code)"])
    #expect(try receiver.outcome().status != .exited(0))
  }

  @Test(.blocking, arguments: ["phone", "watch"])
  func outOfRangeWhatIsGuaranteedWaits(sender: String) throws {
    let receiver = try side(other(sender), ["activate", "await=never"])
    try wait(receiver, ["activated 2"])
    try pairing.setInRange(false)
    let program = try side(sender, ["activate"] + all + ["await=never"])
    try wait(program, ["message failed 7007", "question failed 7007"])
    #expect(try !receiver.output.contains("info") && !receiver.output.contains("file"))
    try pairing.setInRange(true)
    try wait(receiver, guaranteed)
    try wait(program, ends + ["reachable true"])
    #expect(try !receiver.output.contains("message"))
  }

  @Test(.blocking) func theWatchsMessageStartsThePhonesApp() throws {
    let shared = try SharedContainer(directory: container)
    try shared.registerLaunch(
      of: "phone.watch", program: Programs.built("DropInPeer"),
      arguments: ["session", "activate", "await=info n=9", "drain"],
      environment: ["WORMHOLE_ROLE": "phone"])
    let program = try side("watch", ["activate", "question=1", "question=2", "await=reply n=-2"])
    #expect(try program.outcome().status == .exited(0))
    let replies = try program.output.split(separator: "\n").filter { $0.hasPrefix("reply") }
    #expect(replies == ["reply n=-1", "reply n=-2"])
    // The last transfer leaves no process running.
    let last = try side("watch", ["activate", "info=9", "await=finished"])
    #expect(try last.outcome().status == .exited(0))
  }

  @Test(.blocking) func aComplicationTransferStartsTheWatchsApp() throws {
    let shared = try SharedContainer(directory: container)
    try shared.registerLaunch(
      of: "watch.watch", program: Programs.built("DropInPeer"),
      arguments: ["session", "activate", "await=info n=2", "drain"],
      environment: ["WORMHOLE_ROLE": "watch"])
    try pairing.setComplication(enabled: true)
    let program = try side(
      "phone", ["activate", "info=2", "message=5", "complication=1", "await=finished n=2"])
    #expect(try program.outcome().status == .exited(0))
    #expect(try program.output.contains("message failed 7007"))
    let finished = try program.output.split(separator: "\n").filter { $0.hasPrefix("finished") }
    #expect(finished == ["finished n=1 ok", "finished n=2 ok"])
  }

  @Test(.blocking) func anUnknownRoleIsNoSide() throws {
    let program = try side("tablet", ["activate", "info=1"])
    let ended = try program.outcome()
    #expect(ended.status == .exited(0))
    #expect(ended.output.hasPrefix("activated 0\n"))
  }
}
