import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// Lent messages of another machine's queue, whose workers have ended or are late.
///
/// No worker of this machine is there to return their claims.
@Suite(.blocking) struct WorkedQueueTests {
  private let meeting: Meeting
  private let carrier: Carrier
  private let proxy: Proxy

  init() throws {
    meeting = try Meeting()
    carrier = try Carrier(meeting.another())
    proxy = try carrier.proxy(ofQueue: "jobs", on: "0123456789abcdef")
  }

  /// Lends a message as a carrier does with what arrives; returns its name here.
  private func lend(
    _ number: Int, attempt: Int = 1, key: String? = nil
  ) throws -> MessageName {
    try meeting.container.queue("source", of: Int.self).send(
      number, .quick { $0.orderingKey = key })
    let inbox = try meeting.folder("queues/source/inbox")
    let file = try #require(try inbox.names().first)
    let sent = try #require(MessageName(file))
    let message = try carrier.message(sent, meeting.bytes(of: "queues/source/inbox/\(file)"))
    try inbox.unlink(file)
    let origin: PropertyListValue = [
      WorkedQueue.Key.attempt: .integer(Int64(attempt)), "number": .integer(Int64(number)),
    ]
    let content = try message.delivered(from: origin, expires: nil)
    let storage = meeting.container.storage
    let directory = try storage.bridge(["in"])
    try storage.replace(file, in: directory.descriptor, by: content, sync: false)
    let name = try carrier.arrivalName(of: sent)
    #expect(
      try carrier.lend(
        file, in: directory, as: name, attempt: attempt, isMarked: false, to: "jobs"))
    return name
  }

  /// Claims a message as a worker of its own, which lives until its presence is released.
  private func claim(
    _ name: MessageName, attempt: Int = 1, deadline: Duration? = nil
  ) throws -> Presence {
    let away = try proxy.home.away()
    let (worker, presence) = try away.makeWorker(deadline: deadline)
    let isFirst = attempt == 1
    let waiting = isFirst ? name.text : ClaimedName(name, attempt: attempt - 1).text
    let claimed = ClaimedName(name, attempt: attempt, claim: 7).text
    #expect(
      try away.move(
        waiting, from: isFirst ? .inbox : .claimed, to: worker, .claimed, as: claimed))
    return presence
  }

  private func numbers(_ ended: [WorkedQueue.EndedMessage]) -> [Int] {
    ended.compactMap { $0.origin?["number"]?.intValue }
  }

  @Test func whatAnEndedWorkerHasBegunHasFailedAndTheRestIsUndone() throws {
    let first = try lend(1)
    _ = try lend(2)
    _ = try lend(3, attempt: 2)
    let last = try lend(4, attempt: 2)
    try claim(first).release()
    try claim(last, attempt: 2).release()
    let queue = try WorkedQueue(proxy)
    defer { queue.stop() }
    #expect(try meeting.names("queues/jobs/away/workers") == [])
    let held = try queue.look().held.compactMap { $0["number"]?.intValue }
    #expect(held.sorted() == [1, 2, 3, 4])
    try queue.giveBack()
    let look = try queue.look()
    #expect(look.held.isEmpty && numbers(look.ended) == [1, 2, 3, 4])
    #expect(look.ended.map(\.end) == [.failed, .undone, .undone, .failed])
  }

  @Test func theClaimOfALateWorkerIsReturned() throws {
    let name = try lend(1)
    let presence = try claim(name, deadline: .milliseconds(20))
    let queue = try WorkedQueue(proxy)
    defer { queue.stop() }
    #expect(throws: Never.self) {
      try eventually("it is returned") {
        (try? meeting.names("queues/jobs/away/claimed")) == [ClaimedName(name, attempt: 1).text]
      }
    }
    presence.release()
  }

  /// Otherwise a worker that comes later would have what is another machine's by now.
  @Test func whatWaitsIsTakenAwayAsWellAsWhatWorkersHave() throws {
    let names = [try lend(1), try lend(2, attempt: 2), try lend(3), try lend(4)]
    let presence = try claim(names[2])
    let queue = try WorkedQueue(proxy)
    defer { queue.stop() }
    try queue.revoke { $0["number"]?.intValue != 4 }
    #expect(try meeting.names("queues/jobs/away/inbox") == [names[3].text])
    #expect(try meeting.names("queues/jobs/away/claimed") == [])
    let look = try queue.look()
    #expect(look.held.compactMap { $0["number"]?.intValue } == [4])
    #expect(numbers(look.ended) == [1, 2, 3])
    #expect(look.ended.map(\.end) == [.failed, .failed, .failed])
    presence.release()
  }

  /// The first message of a key is another worker's, and the second one waits for its end.
  @Test func theWorkersOfThisMachineKeepTheOrderOfAKey() throws {
    let presence = try claim(lend(1, key: "seat"))
    let second = try lend(2, key: "seat")
    _ = try lend(3, key: "row")
    let heard = Heard<Int>()
    let callers = try meeting.container.queue("jobs", of: Int.self).callers(handlingDeadline: nil)
    let working = try Thread("working") {
      _ = callers.handle { heard.add(try $0.value()) }
    }
    // A worker tries the messages in their order.
    #expect(throws: Never.self) { try heard.wait("the other key") { $0.contains(3) } }
    #expect(heard.all == [3])
    #expect(try meeting.names("queues/jobs/away/inbox") == [second.text])
    callers.stop()
    working.join()
    presence.release()
  }
}
