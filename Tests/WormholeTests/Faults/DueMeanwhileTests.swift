import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Delayed messages that another process delivers while a call goes through the queue.
@Suite(.blocking) struct DueMeanwhileTests {
  private let meeting: Meeting
  private let clock: Monitor<Int64>
  private let peer: Peer

  init() throws {
    let clock = Monitor(Clocks.sinceEpoch)
    self.clock = clock
    meeting = try Meeting { $0.environment.sinceEpoch = { clock.withLock { $0 } } }
    peer = meeting.container.peer("watch")
  }

  private static let delayed = SendOptions.quick { $0.delay = .seconds(3600) }

  /// As another process does.
  private func deliver(_ home: MemberDirectory) {
    clock.withLock { $0 += 7_200_000_000_000 }
    DueMessages.deliver(to: home, meeting.container)
  }

  private func home() throws -> MemberDirectory {
    try #require(try meeting.container.storage.existingMember("watch"))
  }

  /// Such a message is neither settled nor delayed, and has another name than in the listing.
  @Test(arguments: [false, true])
  func aMessageThatBecomesDueDuringTheListingIsListed(_ isClaimed: Bool) throws {
    let first = try peer.send(1, .quick())
    let second = try peer.send(2, Self.delayed)
    let home = try home()
    var listed: [QueuedMessage] = []
    try peer.forEachQueued { message in
      if listed.isEmpty {
        deliver(home)
        try? home.list(.inbox) { file in
          guard isClaimed, let name = MessageName(file), name.id == second.id else { return }
          _ = try? home.claim(ClaimedName(name, attempt: 1))
        }
      }
      listed.append(message)
      return true
    }
    #expect(listed.map(\.id) == [first.id, second.id])
    #expect(listed.map(\.state) == [.waiting, isClaimed ? .interrupted : .waiting])
  }

  /// The purge has listed the message as a delayed one, and finds it in the inbox.
  @Test(arguments: [nil, "Int"] as [String?])
  func aMessageThatBecomesDueDuringThePurgeIsCancelled(_ kind: String?) throws {
    try peer.send(1, Self.delayed)
    try peer.send("text", .quick())
    let home = try home()
    let file = try #require(try meeting.names("members/watch/later").first)
    let (pause, counts) = (FaultPause(), Heard<Int>())
    // With a kind, the message's file is read first.
    let rule =
      kind == nil
      ? FaultRule(.unlink, path: file, .pause(pause)) : FaultRule(.open, path: file, .pause(pause))
    let purging = try Thread("purging") { [peer] in
      FaultPoints.with([rule]) { counts.add((try? peer.purge(kind: kind)) ?? -1) }
    }
    try eventually("the purge has come to the delayed message") { pause.isReached }
    deliver(home)
    pause.open()
    purging.join()
    #expect(counts.all == [kind == nil ? 2 : 1])
    #expect(try peer.queue.map(\.kind) == (kind == nil ? [] : ["String"]))
  }
}
