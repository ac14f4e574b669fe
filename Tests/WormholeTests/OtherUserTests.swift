import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Directories whose modes keep a sender, or a receiver, from writing.
///
/// Root may do everything. So the user `nobody` sends and receives here, in a container of its own,
/// and root takes its directories away and gives them back.
@Suite(.blocking, .notSanitized("processes of users who cannot write its log"))
struct OtherUserTests {
  private static let number: UInt32 = 65_534
  private static let user = "\(number)"

  /// A change of a directory's owner or mode; `giveBack` returns the directory to the user.
  enum Denial: CaseIterable, Sendable {
    case anothers, anothersToRead, readOnly

    var owner: String { self == .readOnly ? user : "0" }
    var mode: String {
      switch self {
      case .anothers: "700"
      case .anothersToRead: "755"
      case .readOnly: "500"
      }
    }
  }

  private struct Scene {
    let folder: TemporaryDirectory
    var path: String { folder.path + "/c" }
    var log: String { folder.path + "/log" }

    /// Prints a note and returns nil if the test cannot become another user.
    static func make(for what: String) throws -> Scene? {
      guard Processes.effectiveUser == 0 else {
        skip(what, because: "only root can become another user")
        return nil
      }
      let scene = Scene(folder: try TemporaryDirectory())
      try scene.must("chown", [user, scene.folder.path])
      try scene.must("chmod", ["755", scene.folder.path])
      // The program may be in a directory that only root can read, so root starts the program.
      let outcome = try scene.start(.join(scene.path, "watch")).outcome()
      if outcome.status == .exited(77) {
        skip(what, because: "there is no other user to become")
        return nil
      }
      #expect(outcome.output == "joined\nleft\n", "\(outcome.errors)")
      return scene
    }

    func start(_ job: PeerJob) throws -> Running {
      try Running(.as(user: number, group: number, job))
    }

    func must(_ program: String, _ arguments: [String]) throws {
      let outcome = try run(program, arguments)
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
    }

    func deny(_ part: String, _ denial: Denial) throws {
      let path = "\(path)/members/watch/\(part)"
      // The mode first, because a former owner could not change the mode.
      try must("chmod", [denial.mode, path])
      try must("chown", [denial.owner, path])
    }

    func giveBack(_ part: String) throws {
      let path = "\(path)/members/watch/\(part)"
      try must("chown", [user, path])
      try must("chmod", ["700", path])
    }

    func names(_ part: String, of name: String = "watch") throws -> [String] {
      try Descriptor.open(path: "\(path)/members/\(name)/\(part)", [.readOnly, .directory]).names()
    }

    func send(_ first: Int, _ count: Int, to name: String = "watch") throws {
      let outcome = try start(
        .send(path, from: "phone", to: name, first..<first + count)
      ).outcome()
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
    }

    /// The deliveries and acknowledgements, in order.
    func handled(_ log: String = "log") throws -> [String] {
      guard try folder.descriptor.names().contains(log) else { return [] }
      return try folder.read(log).split(separator: "\n").map(String.init)
    }

    static func lines(_ numbers: ClosedRange<Int>) -> [String] {
      numbers.flatMap { ["\($0) 1 false", "\($0) done"] }
    }
  }

  /// Some of the directories can still be read.
  @Test(arguments: Denial.allCases)
  func theDoctorFindsClosedReceipts(_ denial: Denial) throws {
    guard let scene = try Scene.make(for: "receipts that may not be written to") else { return }
    let place = "members/watch/receipts: "
    func problems() throws -> [Substring] {
      let outcome = try scene.start(.diagnose(scene.path)).outcome()
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
      return outcome.output.split(separator: "\n").filter { $0.hasPrefix(place) }
    }
    #expect(try problems() == [])
    try scene.deny("receipts", denial)
    #expect(try problems().count == 1)
    try scene.giveBack("receipts")
    #expect(try problems() == [])
  }

  /// The last number that an insisting sender has sent.
  private func sent(_ sender: Running) throws -> Int {
    let last = try sender.output.split(separator: "\n").last { $0.hasPrefix("sent ") }
    return last.flatMap { Int($0.dropFirst(5)) } ?? 0
  }

  @Test(arguments: Denial.allCases)
  func anInboxThatMayNotBeWrittenTo(_ denial: Denial) throws {
    guard let scene = try Scene.make(for: "an inbox that may not be written to") else { return }
    let (stop, path) = (scene.folder.path + "/stop", scene.path)
    let sender = try scene.start(
      .insist(path, from: "phone", to: "watch", other: "clock", until: stop))
    try eventually("it sends") { try sent(sender) >= 3 }
    try scene.deny("inbox", denial)
    let words = "permissionDenied: cannot send message to 'watch': permission denied; "
    try eventually("it is told") { try sender.output.contains(words) }
    // By then no more messages are sent, and the inbox contains only sent messages.
    let before = try sent(sender)
    #expect(try scene.names("inbox").count == before)
    let others = try scene.names("inbox", of: "clock").count
    try eventually("another queue goes on") {
      try scene.names("inbox", of: "clock").count >= others + 10
    }
    #expect(try sent(sender) == before)
    // A sender that has never had the inbox open gets the same error, with a hint.
    let fresh = try scene.start(.send(path, from: "tv", to: "watch", 1..<2)).outcome()
    #expect(fresh.status == .exited(70))
    #expect(
      fresh.errors.hasSuffix(
        ": permission denied; 'members/watch/inbox' belongs to user \(denial.owner) and has the "
          + "mode \(denial.mode), and user \(Self.user) may not write to the directory: run "
          + "'chown' or 'chmod' on the directory\n"), "\(fresh.errors)")
    try scene.giveBack("inbox")
    try eventually("it sends again") { try sent(sender) >= before + 3 }
    _ = try scene.folder.descriptor.open("stop", [.writeOnly, .create], mode: 0o600)
    let outcome = try sender.outcome()
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let last = try sent(sender)
    #expect(outcome.output.hasSuffix("tried \(try scene.names("inbox", of: "clock").count)\n"))
    let receiver = try scene.start(.receive(path, "watch", log: scene.log, until: last))
    #expect(try receiver.outcome().status == .exited(0))
    #expect(try scene.handled() == Scene.lines(1...last))
  }

  enum Moment: CaseIterable, Sendable { case before, meanwhile }

  /// A message is moved to `claimed/` before it is read, so without the folder no message is read.
  @Test(arguments: Denial.allCases, Moment.allCases)
  func claimedMessagesThatHaveNoPlace(_ denial: Denial, _ moment: Moment) throws {
    guard let scene = try Scene.make(for: "a receiver that may not claim") else { return }
    try scene.send(1, 3)
    if moment == .before { try scene.deny("claimed", denial) }
    let receiver = try scene.start(.receive(scene.path, "watch", log: scene.log, until: 6))
    if moment == .meanwhile {
      try eventually("it receives") { try scene.handled() == Scene.lines(1...3) }
      try scene.deny("claimed", denial)
    }
    try scene.send(4, 3)
    try eventually("it is logged") {
      try receiver.errors.contains(/cannot (claim|list claimed).*'watch'.*: permission denied/)
    }
    let waiting = moment == .before ? 6 : 3
    #expect(try scene.names("inbox").count == waiting)
    #expect(try scene.handled() == (moment == .before ? [] : Scene.lines(1...3)))
    // No other receiver is held up.
    try scene.send(1, 2, to: "clock")
    let clock = try scene.start(
      .receive(scene.path, "clock", log: scene.folder.path + "/other", until: 2))
    #expect(try clock.outcome().status == .exited(0))
    #expect(try scene.handled("other") == Scene.lines(1...2))
    #expect(try scene.names("inbox").count == waiting)
    try scene.giveBack("claimed")
    #expect(try receiver.outcome().status == .exited(0))
    #expect(try scene.handled() == Scene.lines(1...6))
    #expect(try scene.names("dead") == [])
  }
}
