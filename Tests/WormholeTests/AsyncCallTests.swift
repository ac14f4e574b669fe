import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Calls from tasks, which must not block the threads of the cooperative pool.
@Suite struct AsyncCallTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting.patient() }

  @Test func whileTasksWaitForALockTheirNeighboursTakeTheirTurns() async throws {
    let lock = try HeldLock(of: "number", in: meeting)
    let number = container.channel("number", of: Int.self)
    let waiting = (0..<4).map { _ in
      Task { try await number.update(default: 0) { $0 += 1 } }
    }
    // Only a few yields, because each waits for the tasks of other tests.
    let neighbour = Task.detached {
      for _ in 0..<10 { await Task.yield() }
    }
    let given = Task { try await number.put(99) }
    await neighbour.value
    // The put may wait already or may not have started: in both cases it writes nothing.
    given.cancel()
    await #expect(throws: WormholeError.self) { try await given.value }
    // The first of the updates waits for the lock itself.
    try await lock.waitForWaiter()
    waiting[0].cancel()
    do {
      _ = try await waiting[0].value
      Issue.record("it was cancelled")
    } catch WormholeError.Code.cancelled {
    }
    #expect(lock.isHeld, "all that while the lock was held")
    #expect(try number.value == nil)
    lock.release()
    for task in waiting.dropFirst() { _ = try await task.value }
    #expect(try number.value == 3)
  }

  @Test func whatIsCancelledBeforeItBeginsChangesNothing() async throws {
    let (container, gate) = (container, Gate())
    let task = Task {
      await onThisActor { gate.pass() }
      try await container.channel("number", of: Int.self).put(1)
    }
    task.cancel()
    gate.open()
    await #expect(throws: WormholeError.self) { try await task.value }
    #expect(try container.channels() == [])
  }

  @Test func manyMayWaitForOneLock() async throws {
    let lock = try HeldLock(of: "number", in: meeting)
    let number = container.channel("number", of: Int.self)
    let waiting = (0..<500).map { _ in
      Task { try await number.update(default: 0) { $0 += 1 } }
    }
    // A call whose locks are free does not queue behind the waiters.
    try await container.channel("other").put(1)
    _ = try await container.peer("watch").send(1, .quick())
    #expect(lock.isHeld)
    lock.release()
    for task in waiting { _ = try await task.value }
    #expect(try number.value == 500)
  }

  @Test func eachWaitsNoLongerThanItMay() async throws {
    let lock = try HeldLock(of: "number", in: meeting)
    let impatient = try meeting.another {
      Meeting.havePatience(&$0)
      $0.timeout = .milliseconds(50)
    }
    let number = impatient.channel("number", of: Int.self)
    let waiting = (0..<20).map { _ in
      Task { try await number.put(1) }
    }
    for task in waiting {
      do {
        _ = try await task.value
        Issue.record("it waited for longer")
      } catch WormholeError.Code.timedOut {
      }
    }
    #expect(lock.isHeld)
    lock.release()
    #expect(try number.value == nil)
  }

  @Test func whoeverWaitsForRoomCanBeCancelled() async throws {
    let container = try meeting.another { $0.mailbox.maximumQueuedMessages = 1 }
    let watch = container.peer("watch")
    try await watch.send(1, .quick())
    let sending = Task { try await watch.send(2, .quick { $0.whenFull = .wait(.seconds(600)) }) }
    // The send may wait already or may not have started: in both cases nothing is sent.
    sending.cancel()
    do {
      _ = try await sending.value
      Issue.record("it was cancelled")
    } catch WormholeError.Code.cancelled {
    }
    #expect(try meeting.names("members/watch/inbox").count == 1)
  }

  @Test func aBodysErrorComesThroughAndItsValueReturns() async throws {
    let number = container.channel("number", of: Int.self)
    #expect(try await number.put(1) == 1)
    #expect(try await number.update { $0 = ($0 ?? 0) + 1 } == 2)
    await #expect(throws: Missing.self) { try await number.update { _ in throw Missing() } }
    #expect(try await number.updateIfNeeded { _ in .keep } == 2)
    #expect(
      try await number.updateIfNeeded(default: 7) {
        $0 += 1; return .commit
      } == 3)
    await #expect(throws: WormholeError.self) { try await number.put(1, ifVersion: 7) }
    let other = container.channel("other", of: String.self)
    try await container.update(number, other) {
      $0 = 5; $1 = "five"
    }
    try await container.update([number, container.channel("third")]) { $0 = [6, 7] }
    #expect(try number.value == 6)
    #expect(try other.value == "five")
    #expect(try await number.clear() == 6)
    let defaults = container.defaults("app")
    try await defaults.set(1, forKey: "one")
    try await defaults.update { $0["two"] = 2 }
    try await defaults.removeObject(forKey: "one")
    #expect(try defaults.dictionaryRepresentation() == ["two": 2])
    try await defaults.removeAll()
    #expect(try defaults.dictionaryRepresentation() == [:])
  }

  @Test func aMemberOfAScopeLeavesAlsoWhenItIsCancelled() async throws {
    let other = try await SharedContainer(directory: meeting.path)
    let (began, beginning) = AsyncStream<Void>.makeStream()
    let (never, ending) = AsyncStream<Void>.makeStream()
    let task = Task {
      try await other.withMember(as: "watch") { member in
        #expect(member.isJoined)
        beginning.yield()
        // Ends when the task is cancelled.
        for await _ in never { break }
        throw CancellationError()
      }
    }
    for await _ in began { break }
    #expect(try container.peer("watch").reachability == .running)
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    ending.finish()
    #expect(try container.peer("watch").reachability == .notRunning)
  }
}

/// Runs a synchronous body on the task's own thread.
private func onThisActor(_ body: @Sendable () -> Void) async { body() }

// MARK: Compilation

/// Callers of all kinds; their compilation is the test.
@MainActor private final class Screen {
  private var speed = 0
  private let channel: Channel<Int>

  init(_ container: SharedContainer) { channel = container.channel("speed") }

  func show() async throws {
    speed = try await channel.put(speed)
    let now = speed
    try await channel.update { $0 = now }
    // A closure that captures the actor's own state is created on the actor.
    _ = try channel.watch { @MainActor [weak self] in self?.speed = $0.value ?? 0 }
  }

  func showAtOnce() throws {
    try channel.update { $0 = speed }
    speed = try channel.put(1)
  }
}

private actor Till {
  private var sum = 0
  private let container: SharedContainer

  init(_ container: SharedContainer) { self.container = container }

  func add(_ amount: Int) async throws -> Int {
    let member = try await container.join(as: "till")
    defer { member.leave() }
    let total = sum + amount
    sum = try await container.channel("sum", of: Int.self).update(default: 0) { $0 = total }
    try await member.peer("office").setContext(sum)
    return sum
  }

  func addAtOnce(_ amount: Int) throws {
    try container.channel("sum", of: Int.self).update { $0 = ($0 ?? 0) + amount + sum }
  }
}

extension AsyncCallTests {
  @Test func callersOfAllKindsCompile() async throws {
    let screen = await Screen(container)
    try await screen.show()
    try await screen.showAtOnce()
    let till = Till(container)
    #expect(try await till.add(3) == 3)
    try await till.addAtOnce(1)
    var local = 1
    // In a synchronous closure the blocking overload is called.
    let numbers = try [1, 2].map { try container.channel("n", of: Int.self).put($0) }
    local += numbers.count
    let captured = local
    #expect(try await container.channel("n", of: Int.self).update { $0 = captured } == 3)
  }
}
