import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// A file system that does not respond, as if its server were gone: each call to it waits.
@Suite(.blocking) struct StuckFileSystemTests {
  private typealias Heard = TestSupport.Heard

  /// The file system holds up its own container, and no other container that the process has open.
  @Test func whatIsElsewhereGoesOn() throws {
    guard let disk = try TestFileSystem.make(.fuse, for: "a file system that does not answer")
    else { return }
    var options = Options()
    options.lease = .milliseconds(50)
    let path = disk.path + "/c"
    let stuck = try SharedContainer(directory: path, options: options)
    // More watches than the watcher has threads.
    var watches = try (0..<8).map { number in
      let channel = stuck.channel("n\(number)", of: Int.self)
      try channel.put(number)
      return try channel.watch { _ in }
    }
    let meeting = try Meeting(Self.lease)
    let number = meeting.container.channel("number", of: Int.self)
    let heard = Heard<Int>()
    watches.append(try number.watch { heard.add($0.value ?? 0) })

    try disk.stall()
    let callers = try Callers([
      { _ = try stuck.channel("n0", of: Int.self).watch { _ in } },
      { _ = try stuck.channel("new", of: Int.self).watch { _ in } },
      { try stuck.channel("n1", of: Int.self).put(1) },
      { try stuck.channel("n2", of: Int.self).update { $0 = ($0 ?? 0) + 1 } },
      { _ = try stuck.channel("n3", of: Int.self).value },
      { _ = try SharedContainer(directory: path) },
    ])
    defer {
      #expect(throws: Never.self) { try disk.goOn() }
      #expect(callers.join() == [])
    }

    let end = Instant.now + .seconds(1)
    var value = 0
    while Instant.now < end {
      value += 1
      try number.put(value)
      try heard.wait("a put elsewhere is heard") { $0.last == value }
    }
    let late = Heard<Int>()
    watches.append(try number.watch { late.add($0.value ?? 0) })
    try late.wait("a new watch hears") { $0.last == value }
    try keepALock(of: number, of: meeting)
    #expect(callers.areWaiting, "it did not answer meanwhile")
    for watch in watches.suffix(2) { watch.stop() }
  }

  /// Long enough for a busy machine to renew a heartbeat in time.
  private static func lease(_ options: inout Options) {
    options.lease = .milliseconds(400)
  }

  /// A slow holder's heartbeat is renewed, so no waiter takes the lock over.
  private func keepALock(of number: Channel<Int>, of meeting: Meeting) throws {
    let other = try meeting.another(Self.lease).channel("number", of: Int.self)
    for attempt in 1...5 {
      let bystander = try Bystander()
      let isHeld = Monitor(false)
      let contender = try Callers([
        {
          let _: Void? = isHeld.wait(until: .now + patience) { $0 ? () : nil }
          try other.update { $0 = 1000 + attempt }
        }
      ])
      let calls = Monitor(0)
      try number.update { value in
        calls.withLock { $0 += 1 }
        isHeld.signal { $0 = true }
        let _: Void? = Monitor(()).wait(until: .now + .seconds(1)) { _ in nil }
        value = 500
      }
      #expect(contender.join() == [])
      // Unless this process did not run for a good part of the lease, as on a busy machine.
      let runs = calls.withLock { $0 }
      if runs > 1, bystander.longestDelay() > .milliseconds(100), attempt < 5 { continue }
      #expect(runs == 1, "nobody has taken its lock over")
      #expect(try number.value == 1000 + attempt)
      return
    }
  }
}

/// Threads that make a call each.
private final class Callers {
  private let returned = Monitor(0)
  private let errors = Monitor<[String]>([])
  private var threads: [Thread] = []

  init(_ bodies: [@Sendable () throws -> Void]) throws {
    for body in bodies {
      let (returned, errors) = (returned, errors)
      threads.append(
        try Thread("caller") {
          do { try body() } catch { errors.withLock { $0.append("\(error)") } }
          returned.withLock { $0 += 1 }
        })
    }
  }

  /// Some have not returned.
  var areWaiting: Bool { returned.withLock { $0 < threads.count } }

  /// Waits until all have returned; returns the errors of the failed calls.
  func join() -> [String] {
    for thread in threads { thread.join() }
    threads = []
    return errors.withLock { $0 }
  }
}
