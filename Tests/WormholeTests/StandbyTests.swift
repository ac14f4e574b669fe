import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// Processes that wait for a name, and take over when its holder ends.
@Suite(.blocking) struct StandbyTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting() }

  @Test func aFreeNameIsTakenAtOnce() throws {
    let member = try container.join(as: "phone", info: ["is": "first"], within: nil)
    #expect(member.isJoined)
    #expect(try container.peer("phone").profile?.info == ["is": "first"])
    member.leave()
  }

  @Test func theHolderKeepsTheNameBeyondTheTimeLimit() throws {
    let first = try container.join(as: "phone")
    let start = Instant.now
    let error = try failure {
      _ = try meeting.another().join(as: "phone", within: .milliseconds(300))
    }
    #expect(error.code == .nameTaken)
    #expect(Instant.now - start >= .milliseconds(300))
    #expect(first.isJoined)
  }

  @Test(arguments: [Processes.Signal.terminate, .kill])
  func aStandbyTakesOverWhenTheHolderEnds(signal: Processes.Signal) throws {
    let other = try meeting.another()
    var times: [Duration] = []
    // Without the notice of the end, a standby looks once a second: eight tenths after the signal.
    // On a busy machine, only some rounds are quick.
    while times.count < 10, times.min().map({ $0 > .milliseconds(400) }) ?? true {
      let holder = try Running(.be(meeting.path, "phone"))
      try eventually("it has joined") { try holder.output.contains("\n") }
      let joined = Monitor(Result<Member, any Error>?.none)
      let thread = try Thread("standby") {
        let result = Result { try other.join(as: "phone", within: .seconds(60)) }
        joined.signal { $0 = result }
      }
      let early = joined.wait(until: .now + .milliseconds(200)) { $0 }
      #expect(early == nil)
      let start = Instant.now
      try holder.child.send(signal)
      let member = try #require(try joined.wait(until: .now + patience) { $0 }?.get())
      times.append(Instant.now - start)
      #expect(member.isJoined)
      thread.join()
      member.leave()
      _ = try holder.outcome()
    }
    #expect(times.contains { $0 <= .milliseconds(400) } || TestRun.isSanitized, "\(times)")
  }

  @Test func ofSeveralStandbysOneTakesOver() throws {
    let first = try container.join(as: "phone")
    let holders = Heard<Bool>()
    let threads = try (0..<4).map { _ in
      let own = try meeting.another()
      return try Thread("standby") {
        guard let member = try? own.join(as: "phone", within: .seconds(60)) else {
          return holders.add(false)
        }
        holders.add((try? own.join(as: "phone")) == nil)
        member.leave()
      }
    }
    first.leave()
    for thread in threads { thread.join() }
    #expect(holders.all == [true, true, true, true])
  }

  @Test func aDirectoryThatIsRemovedMeanwhileIsNoHolder() throws {
    let holder = try container.join(as: "phone")
    let other = try meeting.another()
    let joined = Monitor(Bool?.none)
    let thread = try Thread("standby") {
      let member = try? other.join(as: "phone", within: .seconds(60))
      joined.signal { $0 = member != nil }
      member?.leave()
    }
    #expect(joined.wait(until: .now + .milliseconds(200)) { $0 } == nil)
    _ = try run("rm", ["-r", meeting.path + "/members/phone"])
    #expect(joined.wait(until: .now + patience) { $0 } == true)
    thread.join()
    holder.leave()
  }
}

/// The asynchronous overload.
@Suite struct AsyncStandbyTests {
  @Test func aCancelledStandbyWaitsNoLonger() async throws {
    let meeting = try Meeting()
    let first = try await meeting.container.join(as: "phone")
    let other = try meeting.another()
    let waiting = Task { try await other.join(as: "phone", within: nil) }
    // The task may not have begun to wait by now: it ends all the same.
    waiting.cancel()
    await #expect(throws: CancellationError.self) {
      do {
        _ = try await waiting.value
      } catch let error as WormholeError where error.isCancellation {
        throw CancellationError()
      }
    }
    await first.leave()
    #expect(try other.peer("phone").reachability == .notRunning)
    let member = try await other.join(as: "phone", within: .seconds(10))
    await member.leave()
  }
}
