import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Entries among the workers of a queue that no worker has made, or that cannot be read for a
/// moment.
@Suite(.blocking) struct ForeignWorkerTests {
  private static let name = "0123456789abcdef.0"

  private let meeting: Meeting
  private let queue: Wormhole.Queue<Int>
  private let logged: Heard<String>

  init() throws {
    let logged = Heard<String>()
    self.logged = logged
    meeting = try Meeting {
      $0.sharing = .group
      $0.log = { logged.add($0.text) }
    }
    queue = meeting.container.queue("jobs")
  }

  private func home() throws -> MemberDirectory {
    try #require(try meeting.container.storage.existingMember("jobs", in: .queues))
  }

  /// Makes a worker that has ended, and has the first message of the queue.
  private func makeDeadWorker() throws {
    let home = try home()
    let (worker, presence) = try home.makeWorker(deadline: nil)
    let names = try meeting.names("queues/jobs/inbox").compactMap { MessageName($0) }
    let first = try #require(names.min())
    let claimed = ClaimedName(first, attempt: 1, claim: 1)
    #expect(try home.move(first.text, from: .inbox, to: worker, .claimed, as: claimed.text))
    presence.release()
  }

  /// An entry that a member of the group puts among the workers.
  enum Entry: CaseIterable, Sendable {
    case link, file, closedDirectory, claimsThatAreAFile

    func make(in workers: borrowing Descriptor) throws {
      switch self {
      case .link: try workers.makeSymbolicLink(name, to: "/")
      case .file: _ = try workers.open(name, .writeOnlyNew, mode: 0o600)
      case .closedDirectory: try workers.makeDirectory(name, mode: 0o700)
      case .claimsThatAreAFile:
        try workers.makeDirectory(name, mode: 0o700)
        let directory = try workers.open(name, [.readOnly, .directory])
        try directory.setMode(0o2770)
        _ = try directory.open("claimed", .writeOnlyNew, mode: 0o600)
      }
    }

    /// The path that the inspection reports.
    var subject: String {
      "queues/jobs/workers/\(name)" + (self == .claimsThatAreAFile ? "/claimed" : "")
    }
  }

  @Test(arguments: Entry.allCases) func aForeignEntryStopsNoQueue(_ entry: Entry) throws {
    try queue.send(1, .quick())
    let second = try queue.send(2, .quick()).id
    try queue.send(3, .quick())
    try makeDeadWorker()
    try entry.make(in: meeting.folder("queues/jobs/workers"))
    #expect(try queue.messages.map(\.state) == [.interrupted, .waiting, .waiting])
    #expect(try queue.cancel(id: second) == .cancelled)
    let found = try meeting.container.storage.inspect().filter { $0.subject == entry.subject }
    #expect(found.map(\.severity) == [.problem])
    let heard = Heard<Int>()
    let working = try queue.work { job, _ in heard.add(job) }
    try eventually("both are handled") { heard.all.sorted() == [1, 3] }
    try eventually("the queue is empty") { try queue.messages.isEmpty }
    working.stop()
    // The entry is found at each look after the workers, and is no reason for a report each time.
    #expect(!logged.all.contains { $0.hasPrefix("cannot look after the workers") })
  }

  /// The queue is not known as long as the claims of a worker are not known.
  @Test func aWorkerThatCannotBeOpenedForAMomentIsAnError() throws {
    try queue.send(1, .quick())
    try makeDeadWorker()
    let name = try #require(try meeting.names("queues/jobs/workers").first)
    FaultPoints.with([FaultRule(.open, path: name, .fail(.tooManyOpenFiles))]) {
      do throws(WormholeError) {
        _ = try queue.messages
        Issue.record("the queue was listed")
      } catch {
        #expect(error.code == .exhausted)
      }
    }
    #expect(try queue.messages.count == 1)
  }

  /// Its messages may be in use.
  @Test func aWorkerWithAPresenceThatMayNotBeOpenedCountsAsPresent() throws {
    try queue.send(1, .quick())
    try makeDeadWorker()
    let home = try home()
    let worker = try #require(try home.workers().first)
    let rule = FaultRule(.open, path: MemberDirectory.presenceName, .fail(.accessDenied))
    var isPresent = false
    try FaultPoints.with([rule]) { isPresent = try worker.isPresent() }
    #expect(isPresent)
    FaultPoints.with([rule]) {
      #expect(throws: Errno.accessDenied) { try home.isPresent() }
    }
    #expect(try !worker.isPresent())
  }

  @Test func aWorkerThatCannotBeReadDelaysNoReturn() throws {
    try queue.send(contentsOf: [1, 2], .quick())
    for _ in 0..<2 { try makeDeadWorker() }
    let home = try home()
    let rule = FaultRule(.open, path: MemberDirectory.presenceName, .fail(.inputOutput))
    FaultPoints.with([rule]) {
      let patrol = QueuePatrol(home, "", meeting.container)
      let failure = Errno.of { () throws(Errno) in try patrol.returnEnded() }
      #expect(failure == .inputOutput)
    }
    #expect(try meeting.names("queues/jobs/claimed").count == 1)
  }

  /// A worker that leaves removes the directory of its claims first, and may be killed before it
  /// removes its own.
  @Test func aWorkerWithoutADirectoryOfClaimsKeepsNoFile() throws {
    try queue.send(1, .quick())
    let names = try meeting.names("queues/jobs/inbox").compactMap { MessageName($0) }
    let name = try #require(names.first)
    let home = try home()
    #expect(try home.remove(name.text, from: .inbox))
    _ = try meeting.folder("queues/jobs/files").open(name.fileName, .writeOnlyNew, mode: 0o600)
    let (worker, presence) = try home.makeWorker(deadline: nil)
    presence.release()
    try meeting.folder("queues/jobs/workers/\(worker.escaped)").removeDirectory("claimed")
    #expect(try home.sweepFiles { MessageName.messages(ofFile: $0) } == [name.fileName])
  }

  /// A worker may have messages in a directory that this user may not read: no file of a message is
  /// removed, and the queue does not move.
  @Test(arguments: ["", "/claimed"])
  func nothingIsRemovedWhileTheClaimsOfAWorkerAreUnknown(_ part: String) throws {
    try queue.send(1, .quick())
    let names = try meeting.names("queues/jobs/inbox").compactMap { MessageName($0) }
    let file = try #require(names.first).fileName
    _ = try meeting.folder("queues/jobs/files").open(file, .writeOnlyNew, mode: 0o600)
    try makeDeadWorker()
    let home = try home()
    let worker = try #require(try meeting.names("queues/jobs/workers").first)
    try meeting.folder("queues/jobs/workers/\(worker)\(part)").setMode(0o700)
    #expect(try home.sweepFiles { MessageName.messages(ofFile: $0) } == [])
    #expect(try meeting.names("queues/jobs/files").contains(file))
    let carrier = try Carrier(meeting.container)
    let error = try failure { try carrier.leave("jobs", to: "0123456789abcdef", term: 1) }
    #expect(error.code == .nameTaken)
  }
}
