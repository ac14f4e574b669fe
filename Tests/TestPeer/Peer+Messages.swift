import SharedContainer
import Syscalls
import TestSupport
import Wormhole

/// Jobs of members that send and receive, and of those that are killed meanwhile.
extension Peer {
  /// `send <container> <from> <to> <first> <count> <batch> [power|process] [<option>…]`: sends
  /// numbers, that many in a call, and says after each call what the last one was.
  ///
  /// The options are `wait`, which has it wait for room, and `id`, which gives names.
  static let send = Job("send") { arguments in
    let member = try meeting(arguments[0]).join(as: arguments[1])
    let peer = member.peer(arguments[2])
    let (first, count, size) = (Int(arguments[3])!, Int(arguments[4])!, Int(arguments[5])!)
    var options = Wormhole.SendOptions()
    if arguments.count > 6, arguments[6] == "process" { options.durability = .process }
    if arguments.contains("wait") { options.whenFull = .wait(.seconds(60)) }
    for start in stride(from: first, to: first + count, by: size) {
      let end = min(start + size, first + count)
      if arguments.contains("id") { options.id = "n\(start)" }
      if size == 1 {
        try peer.send(start, options)
      } else {
        try peer.send(contentsOf: Array(start..<end), options)
      }
      try say("\(end - 1)")
    }
    member.leave()
  }

  /// `receive <container> <name> <log> <last> [<poison>]`: writes a line for each message, the
  /// number, the attempt and whether it is marked, then acknowledges it and writes another line;
  /// ends when it has had the last.
  ///
  /// The poison kills it. Errors in its log go to standard error.
  static let receive = Job("receive") { arguments in
    let log = try Descriptor.open(
      path: arguments[2], [.writeOnly, .create, .append], mode: 0o600)
    let last = Int(arguments[3])!
    let poison = arguments.count > 4 ? Int(arguments[4])! : nil
    let hole = try meeting(arguments[0]) { level, words in
      if level >= .error { try? say(words, on: .error) }
    }
    let member = try patiently { try hole.join(as: arguments[1]) }
    let isOver = Monitor(false)
    let receiving = try member.receive(acknowledging: .explicit) { message in
      let number = try message.value(as: Int.self)
      try note("\(number) \(message.attempt) \(message.isRedelivered)\n", log)
      if number == poison { Processes.exitAtOnce(9) }
      try message.acknowledge()
      try note("\(number) done\n", log)
      if number == last { isOver.signal { $0 = true } }
    }
    try say("receiving")
    let _: Bool? = isOver.wait(until: .now + .seconds(120)) { $0 ? true : nil }
    receiving.stop()
    member.leave()
  }

  /// `refuse <container> <name> <attempts>`: receives one message after the other and refuses each,
  /// until there is nothing more in hand or waiting.
  static let refuse = Job("refuse") { arguments in
    let member = try meeting(arguments[0], attempts: Int(arguments[2])!).join(as: arguments[1])
    let receiving = try member.receive { _ in throw Refused() }
    try eventually("all is given up", within: .seconds(5)) {
      try waiting(arguments[0], arguments[1]) == 0
    }
    receiving.stop()
    member.leave()
    try say("done")
  }

  /// `cancel <container> <from> <to>`: cancels what is outstanding, and says what it could.
  static let cancel = Job("cancel") { arguments in
    let member = try meeting(arguments[0]).join(as: arguments[1])
    for sent in try member.peer(arguments[2]).outstanding where try sent.cancel() {
      try say(sent.id)
    }
    member.leave()
  }

  /// `outcomes <container> <name> <count>`: says how messages ended, as many.
  static let outcomes = Job("outcomes") { arguments in
    let member = try meeting(arguments[0]).join(as: arguments[1])
    let count = Monitor(0)
    let watching = try member.watchOutcomes { outcome in
      try? say("\(outcome.id) \(outcome.end)")
      count.signal { $0 += 1 }
    }
    let wanted = Int(arguments[2])!
    let _: Bool? = count.wait(until: .now + .seconds(5)) { $0 >= wanted ? true : nil }
    watching.stop()
    member.leave()
  }

  /// `drain <container> <name> <count>`: receives that many, says how long it took in nanoseconds,
  /// and how much memory the process had at most, in KiB.
  static let drain = Job("drain") { arguments in
    let member = try meeting(arguments[0]).join(as: arguments[1])
    let (wanted, count) = (Int(arguments[2])!, Monitor(0))
    let begin = Instant.now
    let receiving = try member.receive(Int.self) { _, _ in
      let isLast = count.withLock { count in
        count += 1
        return count == wanted
      }
      if isLast { count.broadcast() }
    }
    let _: Bool? = count.wait(until: .now + .seconds(120)) { $0 >= wanted ? true : nil }
    let time = Instant.now - begin
    receiving.stop()
    let status = try Descriptor.open(path: "/proc/self/status", [.readOnly]).contents()
    let peak = String(decoding: status, as: UTF8.self).split(separator: "\n")
      .first { $0.hasPrefix("VmHWM") }!.split(separator: " ").compactMap { Int($0) }.first!
    try say("\(time.inNanoseconds) \(peak)")
    member.leave()
  }

  private struct Refused: Error {}

  /// How many files wait or are in hand; looked at whatever faults are on.
  private static func waiting(_ path: String, _ name: String) throws -> Int {
    #if FAULT_POINTS
      var count = 0
      try FaultPoints.with { count = try countFiles(path, name) }
      return count
    #else
      return try countFiles(path, name)
    #endif
  }

  private static func countFiles(_ path: String, _ name: String) throws -> Int {
    try ["inbox", "claimed"].reduce(0) { sum, part in
      let folder = [path, "members", name, part].joined(separator: "/")
      return sum + (try Descriptor.open(path: folder, [.readOnly, .directory]).names().count)
    }
  }

  private static func note(_ line: String, _ log: borrowing Descriptor) throws {
    #if FAULT_POINTS
      try FaultPoints.with { try log.write(line) }
    #else
      try log.write(line)
    #endif
  }

  /// One that was killed a moment ago may not be quite gone.
  private static func patiently<Result>(_ body: () throws -> Result) throws -> Result {
    try eventually("the name is free") {
      do {
        return try body()
      } catch let error as WormholeError where error.code == .nameTaken {
        return nil
      }
    }
  }
}
