import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholeSyscalls

/// Files for members of other machines, whose senders die between the file and its message.
@Suite(.blocking, .notSanitized("about processes")) struct DeadSenderTests {
  private let machines: TwoMachines
  private static let size = 1000

  init() throws {
    machines = try TwoMachines()
    try machines.folder.write(String(repeating: "x", count: Self.size), to: "file")
    _ = try watch()
  }

  /// The proxy of the receiver, which is the member of the peer's job.
  private func watch() throws -> Proxy {
    try machines.opened().here.residents.proxy(
      of: .member("watch"), on: TwoMachines.thereName)
  }

  private func send() throws {
    var options = SendOptions()
    options.durability = .process
    try machines.sender.peer("watch").send(
      file: machines.folder.path + "/file", metadata: 1, options)
  }

  /// Starts a program that sends a file, and ends or stops before it places the message.
  private func startSender(_ fault: String) throws -> Running {
    let (here, file) = (machines.folder.path + "/here", machines.folder.path + "/file")
    return try Running(
      .sendFile(here, file, moves: false, durability: .process),
      environment: ["WORMHOLE_FAULTS=rename~watch/inbox/:before:\(fault)"])
  }

  private func leaveFile() throws {
    #expect(try startSender("kill").outcome().status == .signalled(9))
  }

  private func files(_ side: String = "here") throws -> [String] {
    try machines.names("\(side)/members/watch/files").filter { $0 != "room" }
  }

  /// What waits, is in transit, is a dead letter or has a living sender keeps its file.
  @Test func filesOfDeadSendersAreRemovedAtTheNextStartOfTheBridge() throws {
    try send()
    let proxy = try watch()
    let letter = try #require(try proxy.waiting().first)
    #expect(try proxy.claim(letter))
    try proxy.giveUp(letter, "a test")
    try send()
    machines.wire = { _ in 0 }
    try machines.pump()
    #expect(try machines.names("here/members/watch/claimed").count == 1)
    try send()
    let living = try startSender("stop")
    try living.waitUntilStopped()
    let kept = try files()
    #expect(kept.count == 4)
    try leaveFile()
    #expect(try files().count == 5)
    machines.kill()
    _ = try machines.opened()
    let left = try files()
    #expect(left == kept)
    guard left == kept else { return }
    // Nothing is missing: each message arrives with its file.
    #expect(try living.waitOrGo() == "sent\n")
    machines.wire = { _ in 1 }
    try machines.settle()
    let receiver = try machines.there.join(as: "watch")
    defer { receiver.leave() }
    let heard = Heard<String>()
    let receiving = try receiver.receive { message in
      heard.add(try message.file.map { try Self.contents($0.path) } ?? "")
    }
    try heard.wait("three messages", within: .seconds(60)) { $0.count == 3 }
    receiving.stop()
    #expect(heard.all.allSatisfy { $0.count == Self.size })
    try eventually("only the file of the dead letter is left", within: .seconds(60)) {
      try machines.settle()
      return try files() == [kept[0]]
    }
  }

  @Test func filesOfDeadSendersAreRemovedWhenTheReceiverStartsAgain() throws {
    let proxy = try watch()
    func show(_ digits: String) throws {
      let incarnation = try #require(Incarnation(rawValue: digits))
      try proxy.appear(as: incarnation, program: "p", since: Date(timeIntervalSince1970: 1))
    }
    try show("00000000000000a1")
    try send()
    let kept = try files()
    try leaveFile()
    #expect(try files().count == 2)
    try show("00000000000000a2")
    #expect(try files() == kept)
    proxy.disappear()
  }

  private static func contents(_ path: String) throws -> String {
    String(decoding: try Descriptor.open(path: path, [.readOnly]).contents(), as: UTF8.self)
  }
}
