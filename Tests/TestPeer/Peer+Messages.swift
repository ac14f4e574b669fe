import TestSupport
import Wormhole
import WormholeCTesting
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs of members that send and receive, and of members that are killed in between.
extension Peer {
  static func sendAs(
    _ container: String, from sender: String, to peer: String, _ number: Int
  ) throws {
    try meeting(container).peer(peer, from: sender).send(number)
    try say("sent")
  }

  static func send(
    _ container: String, from name: String, to peer: String, _ numbers: Range<Int>, batch: Int,
    durability: Durability, waits: Bool, isNamed: Bool
  ) throws {
    // A waiting sender has a limited queue, so that a receiver that is killed again and again still
    // gets to claim some messages: each receiver begins with a listing of all messages.
    let member = try meeting(container, maximumQueuedMessages: waits ? 4096 : nil).join(as: name)
    let peer = member.peer(peer)
    var options = SendOptions()
    options.durability = durability
    if waits { options.whenFull = .wait(.seconds(60)) }
    for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: batch) {
      let end = min(start + batch, numbers.upperBound)
      if isNamed { options.id = "n\(start)" }
      if batch == 1 {
        try peer.send(start, options)
      } else {
        try peer.send(contentsOf: Array(start..<end), options)
      }
      try say("\(end - 1)")
    }
    member.leave()
  }

  static func receive(
    _ container: String, _ name: String, log: String, until last: Int, poison: Int?
  ) throws {
    let log = try Descriptor.open(
      path: log, [.writeOnly, .create, .append], mode: 0o600)
    let shared = try meeting(container) { entry in
      if entry.level >= .error { try? say(entry.text, on: .error) }
    }
    let member = try patiently { try shared.join(as: name) }
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
    let _: Bool? = isOver.wait(until: .now + .seconds(1200)) { $0 ? true : nil }
    receiving.stop()
    member.leave()
  }

  /// Waits on a thread of its own: the threads of the tasks are as few as the processors.
  private static func pause(_ length: Duration) async throws {
    try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Void, any Error>) in
      do {
        try Thread("pause") {
          let _: Void? = Monitor(()).wait(until: .now + length) { _ in nil }
          continuation.resume()
        }.detach()
      } catch {
        continuation.resume(throwing: error)
      }
    }
  }

  static func work(
    _ container: String, _ name: String, log: String, _ concurrency: Int, _ deadline: Duration,
    killsAt: Int?, stopsAt: Int?, times: Int, rest: Duration
  ) throws {
    let log = try Descriptor.open(path: log, [.writeOnly, .create, .append], mode: 0o600)
    let queue = try meeting(container).queue(name, of: Int.self)
    let count = Monitor(0)
    let working = try queue.work(concurrency: concurrency, handlingDeadline: deadline) {
      number, message in
      try note("\(number) \(message.attempt) \(message.isRedelivered)\n", log)
      if rest > .zero { try await pause(rest) }
      if number == killsAt { Processes.exitAtOnce(9) }
      if number == stopsAt, message.attempt == 1 {
        try Processes.send(.stop, to: Processes.current)
        // The signal may reach another thread first.
        let _: Void? = count.wait(until: .now + .milliseconds(100)) { _ in nil }
      }
      // Before the next message of the key may begin.
      if rest > .zero { try note("\(number) ends\n", log) }
      do throws(WormholeError) {
        try message.acknowledge()
        try? note("\(number) done\n", log)
      } catch {
        try? note("\(number) \(error.code)\n", log)
      }
      count.signal { $0 += 1 }
    }
    try say("working")
    let _: Void? = count.wait(until: .now + .seconds(1200)) { $0 >= times ? () : nil }
    working.stop()
    let isOver = Monitor(false)
    Task.detached {
      try await working.finished()
      isOver.signal { $0 = true }
    }
    let _: Void? = isOver.wait(until: .now + .seconds(60)) { $0 ? () : nil }
    try say("ended")
  }

  static func refuse(_ container: String, _ name: String, attempts: Int) throws {
    let member = try meeting(container, attempts: attempts).join(as: name)
    let receiving = try member.receive { _ in throw Refused() }
    try eventually("all is given up", within: .seconds(5)) {
      try waiting(container, name) == 0
    }
    receiving.stop()
    member.leave()
    try say("done")
  }

  static func cancel(_ container: String, from: String, to: String) throws {
    let member = try meeting(container).join(as: from)
    for sent in try member.peer(to).pendingMessages where try sent.cancel() == .cancelled {
      try say(sent.id)
    }
    member.leave()
  }

  static func outcomes(_ container: String, _ name: String, count wanted: Int) throws {
    let member = try meeting(container).join(as: name)
    let count = Monitor(0)
    let watching = try member.watchOutcomes { outcome in
      try? say("\(outcome.id) \(outcome.status) of \(outcome.kind)")
      count.signal { $0 += 1 }
    }
    let _: Bool? = count.wait(until: .now + .seconds(5)) { $0 >= wanted ? true : nil }
    watching.stop()
    member.leave()
  }

  static func drain(_ container: String, _ name: String, count wanted: Int) throws {
    let member = try meeting(container).join(as: name)
    let count = Monitor(0)
    let before = testing_time_of_process()
    let receiving = try member.receive(Int.self) { _, _ in
      let isLast = count.withLock { count in
        count += 1
        return count == wanted
      }
      if isLast { count.broadcast() }
    }
    let _: Bool? = count.wait(until: .now + .seconds(1200)) { $0 >= wanted ? true : nil }
    let time = testing_time_of_process() - before
    receiving.stop()
    let status = try Descriptor.open(path: "/proc/self/status", [.readOnly]).contents()
    let peak = String(decoding: status, as: UTF8.self).split(separator: "\n")
      .first { $0.hasPrefix("VmHWM") }!.split(separator: " ").compactMap { Int($0) }.first!
    try say("\(time) \(peak)")
    member.leave()
  }

  static func sendForked(_ container: String) throws {
    let shared = try meeting(container)
    let watch = try shared.join(as: "watch")
    var options = SendOptions()
    (options.id, options.durability) = ("n", .process)
    let peer = shared.peer("watch")
    let thread = try Thread("sending") { [options] in _ = try? peer.send(1, options) }
    try eventually("the id is taken") {
      let folder = container + "/members/watch/files"
      return try Descriptor.open(path: folder, [.readOnly, .directory]).names()
        .contains { $0.hasPrefix("id,") }
    }
    try say("\(forking_copy())")
    thread.join()
    let isOver = Monitor(false)
    let receiving = try watch.receive { _ in isOver.signal { $0 = true } }
    let _: Bool? = isOver.wait(until: .now + patience) { $0 ? true : nil }
    receiving.stop()
    do {
      try peer.send(2, options)
      try say("sent")
    } catch let error as WormholeError {
      try say("\(error.code)")
    }
    watch.leave()
  }

  private struct Refused: Error {}

  /// The number of files that wait or are claimed; counted without faults.
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

  /// A process that was killed a moment ago may not be quite gone.
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
