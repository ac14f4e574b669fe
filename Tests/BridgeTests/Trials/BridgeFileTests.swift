import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Files between two machines, with bridges of the command, over a real server.
@Suite(.blocking, .serialized, .notSanitized("about processes")) struct BridgeFileTests {
  private let machines: BridgedMachines?

  init() throws { machines = try BridgedMachines.start() }

  /// 64 MiB, or a gigabyte, arrive while bridges are killed on both sides, and other messages do
  /// not wait for them.
  @Test func aLargeFileArrivesWithKillsOnBothSides() throws {
    guard let machines else { return }
    let size = TestRun.hasTime ? 1 << 30 : 64 << 20
    let (here, there) = (machines.here, machines.there)
    let al = try here.container.join(as: "al")
    let (bob, eve) = (try there.container.join(as: "bob"), try there.container.join(as: "eve"))
    try here.waitUntilRunning("bob")
    try here.waitUntilRunning("eve")
    let path = machines.folder.path + "/file"
    try Self.write(size, to: path)
    let found = Heard<Int>()
    let receiving = try bob.receive(Int.self) { _, message in
      // The receiver has compared the checksum before.
      found.add(message.file?.size ?? -1)
    }
    let others = Heard<Int>()
    let listening = try eve.receive(Int.self) { value, _ in others.add(value) }
    var options = SendOptions()
    (options.durability, options.wantsOutcome) = (.process, true)
    let start = Instant.now
    let sent = try al.peer("bob").send(file: path, metadata: 1, options)
    var (count, kills, largest) = (0, 0, 0)
    var nextKill = Instant.now + .milliseconds(500)
    let end = Instant.now + .seconds(TestRun.hasTime ? 900 : 120)
    while found.count == 0, Instant.now < end {
      count += 1
      let one = try al.peer("eve").send(count, options)
      #expect(one.waitForEnd(until: .now + .seconds(60)) == .delivered)
      for machine in [here, there] { largest = max(largest, machine.largestMemory) }
      if nextKill <= .now, kills < (TestRun.hasTime ? 20 : 4) {
        let machine = kills.isMultiple(of: 2) ? here : there
        kills += 1
        try machine.kill()
        try machine.start()
        nextKill = .now + .milliseconds(TestRun.hasTime ? 2000 : 500)
      }
    }
    let report = found.count == 1 ? "" : try machines.report()
    #expect(found.all == [size], "\(report)")
    #expect(sent.waitForEnd(until: .now + .seconds(60)) == .delivered)
    #expect(others.all == Array(1...count) && kills > 0)
    #expect(largest < 256 << 10, "a bridge has used \(largest) KiB")
    let time = Double((Instant.now - start) / .milliseconds(1)) / 1000
    print(
      "\(size >> 20) MiB in \(time) s with \(kills) kills, \(count) messages to another member "
        + "meanwhile, at most \(largest) KiB of memory")
    receiving.stop()
    listening.stop()
  }

  private static func write(_ size: Int, to path: String) throws {
    let file = try Descriptor.open(path: path, [.writeOnly, .create], mode: 0o600)
    var random = SeededRandom(seed: 1)
    let block = random.bytes(1 << 20)
    for number in 0..<(size >> 20) {
      try file.writeFully(block.span.bytes, at: number << 20)
      let mark = [UInt8(truncatingIfNeeded: number)]
      try file.writeFully(mark.span.bytes, at: number << 20)
    }
  }
}

extension BridgedMachine {
  /// The most memory that the bridge has used, in KiB; 0 if it does not run.
  fileprivate var largestMemory: Int {
    guard let bridge,
      let file = try? Descriptor.open(
        path: "/proc/\(bridge.child.process)/status", [.readOnly]),
      let text = try? file.contents()
    else { return 0 }
    let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
    let line = lines.first { $0.hasPrefix("VmHWM:") } ?? ""
    return line.split { !$0.isNumber }.first.flatMap { Int($0) } ?? 0
  }
}
