import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// P7 for messages: the messages after a power cut, on real file systems that are lost without
/// flushing; and the behaviour on a full file system.
@Suite(.serialized, .blocking, .notSanitized("about file systems and processes"))
struct MailPowerTests {
  private static let kinds: [TestFileSystem.Kind] = [.ext4, .xfs]
  private static let cuts = TestRun.isLong ? 20 : 3

  /// Opens the container as after a restart of the machine: the epoch rises.
  private func open(_ disk: TestFileSystem, after cuts: Int) throws -> SharedContainer {
    var options = Options()
    options.environment = ContainerOptions.testing().environment
    options.environment.bootIdentifier = { "boot \(cuts)" }
    options.mailbox.attempts = 60
    return try SharedContainer(directory: disk.path + "/c", options: options)
  }

  @Test(arguments: kinds)
  func aCutLosesNoMessageThatWasAcknowledged(_ kind: TestFileSystem.Kind) throws {
    let what = "messages after a power cut on \(kind)"
    guard let disk = try TestFileSystem.make(kind, for: what) else { return }
    let folder = try TemporaryDirectory()
    var handed: Set<Int> = []
    var sent: Set<Int> = []
    for cut in 1...Self.cuts {
      try folder.write("", to: "log")
      let first = cut * 1_000_000
      let senders = try [(1, 1), (2, 7)].map { index, batch in
        try Running(
          .send(
            disk.path + "/c", from: "phone\(index)", to: "watch",
            first + index * 100_000..<first + index * 100_000 + 90_000, batch: batch,
            durability: .power))
      }
      let receiver = try Running(
        .receive(disk.path + "/c", "watch", log: folder.path + "/log", until: -1))
      try eventually("they are in the middle of it") {
        try senders.allSatisfy { try $0.output.split(separator: "\n").count > 5 * cut }
          && folder.read("log").split(separator: "\n").count > 20
      }
      // Read before the cut: a file system that was shut down still confirms some calls.
      let said = try senders.map { try $0.output }
      _ = try disk.cut()
      for process in senders + [receiver] {
        try? process.child.send(.kill)
        _ = try process.outcome()
      }
      for (index, output) in said.enumerated() {
        let start = first + (index + 1) * 100_000
        let whole = output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        if let last = whole.last.flatMap({ Int($0) }) { sent.formUnion(start...last) }
      }
      try disk.unmount()
      try disk.mount()
      for line in try folder.read("log").split(separator: "\n") where !line.hasSuffix("done") {
        if let number = Int(line.split(separator: " ")[0]) { handed.insert(number) }
      }
      try drain(try open(disk, after: cut), &handed, "cut \(cut) on \(kind)")
      #expect(sent.subtracting(handed) == [], "lost: cut \(cut) on \(kind)")
    }
    try disk.unmount()
  }

  /// Receives all remaining messages; messages that were delivered before are marked.
  private func drain(_ container: SharedContainer, _ handed: inout Set<Int>, _ place: String) throws
  {
    let member = try container.join(as: "watch")
    let heard = Heard<Handed>()
    let receiving = try member.note(heard)
    try container.peer("watch").send(9)
    try heard.wait("\(place): the last") { $0.contains { $0.number == 9 } }
    receiving.stop()
    member.leave()
    for one in heard.all where one.number != 9 {
      if !handed.insert(one.number).inserted { #expect(one.isMarked, "\(one): \(place)") }
    }
  }

  @Test(arguments: [TestFileSystem.Kind.memory, .ext4, .fewFiles])
  func aFullDiskLosesNoMessage(_ kind: TestFileSystem.Kind) throws {
    guard let disk = try TestFileSystem.make(kind, for: "messages on a full disk (\(kind))") else {
      return
    }
    let container = try open(disk, after: 0)
    let (watch, sender) = (try container.join(as: "watch"), try container.join(as: "phone"))
    let peer = sender.peer("watch")
    for number in 1...3 { try peer.send(number) }
    try disk.fill()
    for durability in [Durability.process, .power] {
      let error = try failure { try peer.send(4, .quick { $0.durability = durability }) }
      #expect(error.code == .full, "\(error)")
    }
    #expect(try failure { try sender.peer("tv").send(5) }.code == .full)
    #expect(try peer.pendingMessages.count == 3)
    // A receiver needs no free space, and frees some.
    let early = Heard<Handed>()
    let draining = try watch.note(early)
    try early.wait("what was there") { $0.count == 3 }
    draining.stop()
    #expect(early.all == (1...3).map { Handed($0) })
    try disk.makeRoom()
    try peer.send(4)
    let heard = Heard<Handed>()
    let receiving = try watch.note(heard)
    try heard.wait("all") { $0.last?.number == 4 }
    #expect(Set((early.all + heard.all).map(\.number)) == [1, 2, 3, 4])
    receiving.stop()
    sender.leave()
    watch.leave()
    #expect(
      try Descriptor.open(path: container.directory + "/staging", [.readOnly, .directory]).names()
        == [])
  }

  /// A member that joins on a full disk, perhaps after a restart, receives the waiting messages,
  /// and so frees space.
  @Test(arguments: [TestFileSystem.Kind.memory, .ext4, .fewFiles], [0, 1])
  func whoJoinsOnAFullDiskReceives(_ kind: TestFileSystem.Kind, _ restarts: Int) throws {
    guard let disk = try TestFileSystem.make(kind, for: "joining on a full disk (\(kind))") else {
      return
    }
    let sender = try open(disk, after: 0)
    for number in 1...3 { try sender.peer("watch").send(number) }
    try disk.fill()
    let container = try open(disk, after: restarts)
    let watch = try container.join(as: "watch")
    let heard = Heard<Handed>()
    let receiving = try watch.note(heard)
    try heard.wait("what was there") { $0.count == 3 }
    #expect(heard.all.map(\.number) == [1, 2, 3])
    #expect(try sender.peer("watch").reachability == .running)
    receiving.stop()
    // The received messages have freed space; another program fills it.
    try disk.fill()
    for ask in [
      { try sender.peer("watch").request(0, as: Int.self, within: patience) },
      {
        try sender.peer("watch").sendImmediately(0); return 0
      },
    ] as [() throws -> Int] {
      let error = try failure { _ = try ask() }
      #expect(error.code == .full, "\(error)")
    }
    watch.leave()
    try disk.makeRoom()
    // When the disk has space, requests succeed as before.
    let again = try container.join(as: "watch")
    let responding = again.respond(toKind: "ask") { try? $0.reply(7) }
    #expect(
      try container.join(as: "phone").peer("watch").request(
        0, as: Int.self, kind: "ask", within: patience) == 7)
    responding.stop()
  }

  @Test func aDiskThatMayOnlyBeReadLosesNoMessage() throws {
    let what = "messages on a disk that may only be read"
    guard let disk = try TestFileSystem.make(.ext4, for: what) else { return }
    do {
      let container = try open(disk, after: 0)
      let sender = try container.join(as: "phone")
      try sender.peer("watch").send(1)
      sender.leave()
    }
    try disk.remount(readOnly: true)
    let container = try open(disk, after: 0)
    let error = try failure { try container.peer("watch").send(2) }
    #expect(error.code == .readOnly, "\(error)")
    #expect(try container.peer("watch").queue.count == 1)
    try disk.remount(readOnly: false)
    let member = try container.join(as: "watch")
    let heard = Heard<Handed>()
    let receiving = try member.note(heard)
    try heard.wait("it comes") { $0 == [Handed(1)] }
    receiving.stop()
  }
}
