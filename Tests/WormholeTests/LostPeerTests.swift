import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Requests to a member that leaves or dies during the request, and to its next incarnation.
@Suite(.blocking) struct LostPeerTests {
  private let address = LiveAddress(folder: .members, name: "watch")
  private let ended = Heard<String>()

  /// Sends a request with a closure, and records its result.
  private func ask(_ number: Int, _ pair: Pair) {
    pair.phone.request(number, as: Int.self, within: .seconds(600)) { [ended] end in
      switch end {
      case .success(let answer): ended.add("\(number) \(answer)")
      case .failure(let error): ended.add("\(number) \(error.code)")
      }
    }
  }

  /// A notice makes the feed read nothing, because the process reads the peer itself; only after
  /// a release the feed reads the presence, and never the profile.
  @Test func aNoticeReadsThePeerOnce() throws {
    let pair = try Pair()
    let storage = pair.sender.container.storage
    let feed = PresenceFeed("watch", "watch", in: .members, storage, .notices)
    let notice = FaultPoints.with { _ = feed.look() }
    #expect(notice == [])
    feed.hear(wasReleased: true)
    let release = FaultPoints.with { _ = feed.look() }
    let reading = try FaultPoints.with { _ = try FoundMember("watch", in: storage) }
    #expect(!release.isEmpty && release.count < reading.count, "\(release)")
  }

  /// A check of the peer is slow: in the meantime the peer leaves, and the next incarnation joins
  /// and receives a request.
  @Test(
    arguments: [
      FaultRule(.ofdquery, .delay(milliseconds: 1000)),
      FaultRule(nil, path: "watch/profile.plist", moment: .after, .delay(milliseconds: 1000)),
    ])
  func theEndOfAnEarlierIncarnationFailsNoNewRequest(_ slow: FaultRule) throws {
    let pair = try Pair()
    let kept = Heard<Request>()
    let first = pair.watch.respond(toKind: nil) { kept.add($0) }
    ask(1, pair)
    try kept.wait("the first") { $0.count == 1 }
    let peers = pair.sender.live.peers
    let isLooking = Monitor(false)
    let looking = try Thread("looking") {
      FaultPoints.with([slow]) {
        isLooking.signal { $0 = true }
        peers.look(after: address)
      }
    }
    isLooking.wait(until: nil) { $0 ? () : nil }
    pair.watch.leave()
    try ended.wait("its end") { $0 == ["1 unreachable"] }
    let heir = try pair.meeting.another().join(as: "watch")
    let second = heir.respond(toKind: nil) { kept.add($0) }
    ask(2, pair)
    try kept.wait("the second") { $0.count == 2 }
    looking.join()
    try kept.all[1].reply(42)
    try ended.wait("the answer") { $0.count == 2 }
    #expect(ended.all == ["1 unreachable", "2 42"])
    first.stop()
    second.stop()
  }

  /// A request that is written when the member leaves goes to the next incarnation.
  @Test func aRequestNotYetWrittenGoesToTheNextIncarnation() throws {
    // A busy machine may not complete the steps within the shorter delay.
    for milliseconds in [500, 5000] {
      let pair = try Pair()
      let kept = Heard<Request>()
      let first = pair.watch.respond(toKind: nil) { kept.add($0) }
      ask(1, pair)
      try kept.wait("the first") { $0.count == 1 }
      let slow = FaultRule(.rename, path: "/live/", .delay(milliseconds: milliseconds))
      let (result, begin) = (Monitor<Result<Int, any Error>?>(nil), Instant.now)
      let asking = try Thread("asking") {
        FaultPoints.with([slow]) {
          let end = Result {
            try pair.phone.request(2, as: Int.self, within: .seconds(20))
          }
          result.withLock { $0 = end }
        }
      }
      try eventually("it is about to be put") { try !pair.meeting.names("staging").isEmpty }
      pair.watch.leave()
      let heir = try pair.meeting.another().join(as: "watch")
      let second = heir.respond(to: Int.self) { $0 * 21 }
      let isInTime = Instant.now - begin < .milliseconds(milliseconds)
      asking.join()
      first.stop()
      second.stop()
      guard isInTime else { continue }
      #expect(try result.withLock { $0 }?.get() == 42)
      return
    }
    Issue.record("the machine is too slow")
  }

  /// The peer's process is killed after the requester has found it, and before the request is
  /// placed.
  ///
  /// The requester has handled the only notice of the death when it goes on, so no later notice
  /// can fail the request.
  @Test func theDeathJustBeforeTheRequestIsNoticed() throws {
    let meeting = try Meeting()
    let peer = try Running(.be(meeting.path, "watch"))
    try eventually("the peer has joined") { try peer.output.contains("\n") }
    let (interval, requester) = (Monitor<Action?>(nil), Thread.currentNumber)
    let phone = try meeting.another { options in
      let random = options.environment.random
      options.environment.random = {
        if Thread.currentNumber == requester { interval.withLock { $0 }?.perform() }
        return random()
      }
    }.join(as: "phone")
    let (peers, address) = (phone.live.peers, address)
    try eventually("the peer is known") {
      let answer = Result { try phone.peer("watch").request(0, as: Int.self, within: patience) }
      return (try? answer.get()) == nil && peers.isKnown(address)
    }
    let names = Monitor(0)
    let death = Monitor<Result<ChildStatus, any Error>?>(nil)
    let action = Action {
      let number = names.withLock { names in
        names += 1
        return names
      }
      // The first name is that of the request. The second one is that of its staged file: the
      // requester has the folder of the peer's incarnation by then.
      guard number == 2 else { return }
      let result = Result {
        try peer.child.send(.kill)
        let status = try peer.outcome().status
        try eventually("the notice of the death is handled") { !peers.isKnown(address) }
        return status
      }
      death.withLock { $0 = result }
    }
    interval.withLock { $0 = action }
    let error = try failure {
      _ = try phone.peer("watch").request(1, as: Int.self, within: .seconds(30))
    }
    interval.withLock { $0 = nil }
    let status = try death.withLock { $0 }?.get()
    #expect(status == .signalled(9))
    #expect(error.code == .unreachable, "\(error)")
    phone.leave()
  }
}
