import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Members with callbacks on actors, and with asynchronous callbacks.
@Suite struct IsolatedReceiveTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting() }

  @Test func anAsynchronousClosureGetsOneMessageAfterTheOther() async throws {
    let watch = try await container.join(as: "watch")
    let desk = Desk()
    try watch.receive(Int.self) { number, _ in
      await desk.begin(number)
      for _ in 0..<20 { await Task.yield() }
      await desk.end(number)
    }
    let numbers = Array(1...70)
    try await container.peer("watch").send(contentsOf: numbers, .quick())
    await desk.wait(for: 70)
    #expect(await desk.ended == numbers)
    #expect(await desk.most == 1)
    try await eventuallyAsync("all is acknowledged") {
      try meeting.names("members/watch/inbox") + meeting.names("members/watch/claimed") == []
    }
  }

  @Test func whatItThrowsIsAFailedAttempt() async throws {
    let other = try meeting.another { $0.mailbox.retryDelay = .zero }
    let watch = try await other.join(as: "watch")
    let desk = Desk()
    try watch.receive { (message: Message) async throws in
      await desk.end(message.attempt)
      if message.attempt == 1 { throw Missing() }
    }
    try await container.peer("watch").send(1, .quick())
    await desk.wait(for: 2)
    #expect(await desk.ended == [1, 2])
  }

  @Test func whatIsNotAcknowledgedStaysInHand() async throws {
    let watch = try await container.join(as: "watch")
    let desk = Desk()
    let receiving = try watch.receive(acknowledging: .explicit) { message in
      await desk.end(try message.value(as: Int.self))
    }
    try await container.peer("watch").send(7, .quick())
    await desk.wait(for: 7)
    receiving.stop()
    try await receiving.finished()
    #expect(try meeting.names("members/watch/claimed").count == 1)
  }

  @MainActor @Test func onceStoppedOnItsActorTheClosureIsNotEntered() async throws {
    let watch = try await container.join(as: "watch")
    let peer = container.peer("watch")
    let screen = Screen()
    let all = [
      try watch.receive(Int.self) { @MainActor number, _ in screen.heard.append(number) },
      watch.receiveImmediate { @MainActor in screen.heard.append((try? $0.value()) ?? 0) },
      try peer.watchReachability { @MainActor in screen.seen.append($0.rawValue) },
      try container.watchMembers { @MainActor in screen.seen.append($0.name) },
    ]
    try await peer.send(1, .quick())
    try await peer.sendImmediately(2)
    let end = Instant.now + .seconds(300)
    while Set(screen.heard) != [1, 2] || !Set(screen.seen).isSuperset(of: ["running", "watch"]),
      Instant.now < end
    {
      await Task.yield()
    }
    #expect(Set(screen.heard) == [1, 2])
    #expect(Set(screen.seen).isSuperset(of: ["running", "watch"]))
    for one in all { one.stop() }
    let (heard, seen) = (screen.heard, screen.seen)
    try await peer.send(3, .quick())
    let other = Heard<Int>()
    try watch.receive(Int.self) { number, _ in other.add(number) }
    try await eventuallyAsync("another has it") { other.all == [3] }
    #expect(screen.heard == heard)
    #expect(screen.seen == seen)
  }

  @Test func anActorsOwnClosureIsItsOwn() async throws {
    let watch = try await container.join(as: "watch")
    let desk = Desk()
    try await desk.open(watch)
    let peer = container.peer("watch")
    // Late messages are dropped, and tasks of other tests may occupy the threads for long.
    for number in 1...20 { try await peer.sendImmediately(number, within: .seconds(600)) }
    await desk.wait(for: 20)
    #expect(await desk.ended == Array(1...20))
  }
}

@MainActor private final class Screen {
  var heard: [Int] = []
  var seen: [String] = []
}

/// Records the given numbers, and lets tests wait for a number.
private actor Desk {
  private(set) var ended: [Int] = []
  private(set) var most = 0
  private var now = 0
  private var waiting: [(Int, CheckedContinuation<Void, Never>)] = []

  func open(_ member: Member) throws {
    member.receiveImmediate { message in
      await self.note((try? message.value(as: Int.self)) ?? 0)
    }
  }

  func begin(_ number: Int) {
    now += 1
    most = max(most, now)
  }

  func end(_ number: Int) {
    now -= 1
    note(number)
  }

  private func note(_ number: Int) {
    ended.append(number)
    for (awaited, continuation) in waiting where awaited == number { continuation.resume() }
    waiting.removeAll { $0.0 == number }
  }

  func wait(for number: Int) async {
    if ended.contains(number) { return }
    await withCheckedContinuation { waiting.append((number, $0)) }
  }
}
