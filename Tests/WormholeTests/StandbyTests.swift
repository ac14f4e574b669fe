import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Processes that wait for a name, and take over when its holder ends.
@Suite(.blocking) struct StandbyTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting() }

  /// A notice before the wait ends the next wait, and no other one.
  @Test func aNoticeEndsOneWait() {
    let notices = NoticeCount()
    #expect(!notices.wait(until: .now))
    for _ in 0..<2 {
      notices.add()
      notices.add()
      #expect(notices.wait(until: .now))
      #expect(!notices.wait(until: .now))
    }
  }

  /// A wait for a place in a queue may have a deadline that is days away.
  @Test func aCancelledTaskDoesNotWaitUntilTheDeadline() {
    let (notices, cancellation) = (NoticeCount(), CancellationFlag())
    cancellation.cancel()
    let end = Instant.now + patience
    let limits = CallLimits(cancellation: cancellation, deadline: nil)
    let isNoticed = OffPool.$terms.withValue(limits) { notices.wait(until: end) }
    #expect(!isNoticed)
    #expect(Instant.now < end)
  }

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

  /// Each close of a presence file that was open for writing causes a notice.
  @Test func noticesWithoutAnEndDoNotExtendTheTimeLimit() throws {
    let first = try container.join(as: "phone")
    let home = try #require(try container.storage.existingMember("phone")).home
    let other = try meeting.another()
    let isOver = Monitor(false)
    let noticing = try Thread("noticing") {
      while true {
        _ = try? home.descriptor.open("presence", [.readWrite]).close()
        let ends = isOver.wait(until: .now + .milliseconds(5)) { $0 ? true : nil }
        if ends == true { return }
      }
    }
    let refusal = Monitor(WormholeError.Code?.none)
    let standby = try Thread("standby") {
      do throws(WormholeError) {
        try other.join(as: "phone", within: .seconds(1)).leave()
      } catch {
        refusal.signal { $0 = error.code }
      }
    }
    let code = refusal.wait(until: .now + patience) { $0 }
    // Without notices, every standby ends.
    isOver.signal { $0 = true }
    noticing.join()
    standby.join()
    #expect(code == .nameTaken)
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
      let (start, bystander) = (Instant.now, try Bystander())
      try holder.child.send(signal)
      let member = try #require(try joined.wait(until: .now + patience) { $0 }?.get())
      times.append(Instant.now - start - bystander.longestDelay())
      #expect(member.isJoined)
      thread.join()
      member.leave()
      _ = try holder.outcome()
    }
    #expect(times.contains { $0 <= .milliseconds(400) } || TestRun.isSanitized, "\(times)")
  }

  @Test func ofSeveralStandbysOneAtATimeTakesOver() throws {
    let first = try container.join(as: "phone")
    let holders = Monitor((now: 0, most: 0, all: 0))
    let threads = try (0..<4).map { _ in
      let own = try meeting.another()
      return try Thread("standby") {
        guard let member = try? own.join(as: "phone", within: .seconds(60)) else { return }
        holders.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1), $0.all + 1) }
        Processes.yield()
        holders.withLock { $0.now -= 1 }
        member.leave()
      }
    }
    first.leave()
    for thread in threads { thread.join() }
    let (now, most, all) = holders.withLock { $0 }
    #expect(now == 0 && most == 1 && all == 4)
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

  @Test func aCancelledTaskStandsByNoLonger() throws {
    let first = try container.join(as: "phone")
    let other = try meeting.another()
    let ended = Monitor(Result<Member, any Error>?.none)
    let waiting = Task {
      do {
        let member = try await other.join(as: "phone", within: nil)
        ended.signal { $0 = .success(member) }
      } catch {
        ended.signal { $0 = .failure(error) }
      }
    }
    // It waits by now.
    let early = ended.wait(until: .now + .milliseconds(400)) { $0 }
    #expect(early == nil)
    waiting.cancel()
    let end = ended.wait(until: .now + patience) { $0 }
    guard case .failure(let error)? = end else {
      Issue.record("\(String(describing: end))")
      return
    }
    #expect(error.isCancellation)
    first.leave()
    #expect(try other.peer("phone").reachability == .notRunning)
  }
}

/// The overload with a body.
@Suite struct StandbyBodyTests {
  @Test func aMemberOfABodyLeavesHoweverTheBodyEnds() async throws {
    let meeting = try Meeting()
    let name = try await meeting.container.withMember(as: "phone", within: .seconds(10)) { member in
      await Task.yield()
      return member.name
    }
    #expect(name == "phone")
    await #expect(throws: Missing.self) {
      try await meeting.container.withMember(as: "phone", within: nil) { _ in
        await Task.yield()
        throw Missing()
      }
    }
    #expect(try meeting.container.peer("phone").reachability == .notRunning)
  }

  private struct Missing: Error {}
}
