import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Entries of members and guests that are refused, reported or left alone.
@Suite(.blocking) struct MemberRefusalTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let home: MemberDirectory

  init() throws {
    (folder, container) = try Container.forTest()
    home = try container.member("a")
  }

  private func start(_ argument: String = "b") -> MemberStart {
    MemberStart(
      program: folder.path + "/program", arguments: [argument], environment: [:], directory: nil)
  }

  @Test func aLaunchCommandThatIsTooLargeIsRefused() throws {
    let large = start(String(repeating: "x", count: MemberStart.largestFile))
    let error = try failure { try home.write(large) }
    #expect(error.code == .tooLarge)
    #expect(error.hint == "store large arguments in a file")
    #expect(try home.readStart("read") == nil)
  }

  /// A file of another member's, or with words that the kernel would not take as they are.
  @Test func aLaunchCommandIsReadOnlyWholeAndForItsMember() throws {
    let sound = start()
    #expect(try MemberStart(sound.encoded(for: "a"), of: "a") == sound)
    #expect(try MemberStart(sound.encoded(for: "b"), of: "a") == nil)
    #expect(try MemberStart(start("b\0c").encoded(for: "a"), of: "a") == nil)
    for program in ["program", "", folder.path + "/a\0b"] {
      let odd = MemberStart(program: program, arguments: [], environment: [:], directory: nil)
      #expect(try MemberStart(odd.encoded(for: "a"), of: "a") == nil, "\(program)")
    }
    for (name, value) in [("A\0", "b"), ("A", "b\0")] {
      let odd = MemberStart(
        program: sound.program, arguments: [], environment: [name: value], directory: nil)
      #expect(try MemberStart(odd.encoded(for: "a"), of: "a") == nil, "\(name)")
    }
  }

  /// A file that is too large to be read would replace the name of the home by nothing.
  @Test func aHomeElsewhereThatCouldNotBeReadIsNotWritten() throws {
    let machine = "0123456789abcdef"
    var elsewhere = Elsewhere(machine: machine, since: Date())
    elsewhere.before = Elsewhere.joined(
      [String(repeating: "x", count: 65)],
      (1...100).map { String(repeating: "\($0 % 10)", count: 60) + "\($0 + 100)" })
    #expect(elsewhere.before.count == Elsewhere.mostBefore)
    #expect(elsewhere.before.last?.hasSuffix("0200") == true)
    try home.write(elsewhere)
    #expect(try home.elsewhere?.before == elsewhere.before)
    var large = elsewhere
    large.before = [String(repeating: "x", count: Elsewhere.largestFile)]
    let error = try failure { [large] in try home.write(large) }
    #expect(error.code == .tooLarge)
    #expect(try home.elsewhere?.machine == machine)
  }

  @Test func aLaunchCommandReplacesALinkAndNoDirectory() throws {
    try home.home.descriptor.makeSymbolicLink(MemberDirectory.startName, to: "nowhere")
    try home.write(start())
    #expect(try home.readStart("read") == start())
    try home.home.descriptor.unlink(MemberDirectory.startName)
    try home.home.descriptor.makeDirectory(MemberDirectory.startName, mode: 0o700)
    let error = try failure { try home.write(start()) }
    #expect(error.errno == Errno.noDevice.rawValue)
    let status = try home.home.descriptor.status(of: MemberDirectory.startName)
    #expect(status.kind == .directory)
  }

  /// A join replaces all other entries that are not plain files.
  @Test func onlyADirectoryThatStopsAJoinIsReported() throws {
    for name in [MemberDirectory.progressName, MemberDirectory.roomName] {
      try home.home.descriptor.makeDirectory(name, mode: 0o700)
    }
    let found = try container.inspect().filter { $0.subject.hasPrefix("members/a/") }
    #expect(
      found == [
        Diagnosis(
          .problem, "members/a/progress", "not a plain file",
          advice: "move the file away, and check its origin; until the move no program can join")
      ])
  }

  @Test func onlyNamesOfGuestsAreGuests() throws {
    let guests = try container.folder(.guests)
    for name in ["0123456789abcdef", "0123456789ABCDEF", "foreign", "0123456789abcde"] {
      try guests.descriptor.makeDirectory(name, mode: 0o700)
    }
    #expect(try container.guestNames() == ["0123456789abcdef"])
    try container.root.descriptor.rename("guests", to: folder.descriptor, "away")
    #expect(try container.guestNames() == [])
  }

  /// Other workers would not find its claims, and its messages would be lost with its process.
  @Test(arguments: [Duration.seconds(Int64.max), .seconds(40 * 365 * 86_400), .zero, .seconds(30)])
  func aWorkerIsFoundWhateverItsDeadline(_ deadline: Duration) throws {
    let queue = try container.member("q", in: .queues)
    let (worker, presence) = try queue.makeWorker(deadline: deadline)
    defer { presence.release() }
    #expect(try queue.workers().map(\.escaped) == [worker.escaped])
    let found = try #require(worker.workerDeadline)
    let longest = Duration.milliseconds((Int64(1) << 40) - 1)
    #expect(found == min(max(deadline, .milliseconds(1)), longest))
  }

  /// A directory with any other name is foreign, and no worker removes it.
  @Test func aWorkersNameHasOneForm() {
    let digits = "0123456789abcdef"
    for rest in [".0", ".1", ".1099511627775", ".0.1", ".30000.65535"] {
      let name = MemberDirectory.WorkerName(digits + rest)
      #expect(name?.text == digits + rest)
    }
    for rest in [
      "", ".", ".x", ".00", ".01", ".+1", ".-1", ".1099511627776", ".1.", "..1", ".0.0", ".0.01",
      ".0.+1", ".0.65536", ".0..1", ".0.1.", ".0.1.1",
    ] {
      #expect(MemberDirectory.WorkerName(digits + rest)?.text == nil, "\(rest)")
    }
    #expect(MemberDirectory.WorkerName(".\(digits).0")?.text == nil)
    #expect(MemberDirectory.WorkerName("0123456789ABCDEF.0")?.text == nil)
  }

  /// A process that sweeps guests would otherwise remove the directory at the same time.
  @Test func aGuestHasItsPresenceUntilItsDirectoryIsGone() throws {
    let ((guest, presence), pause) = (try container.makeGuest(), FaultPause())
    let rule = FaultRule(.rename, path: "/staging/", .pause(pause))
    let remover = try Thread("remover") { [container] in
      FaultPoints.with([rule]) { container.removeGuest(guest, presence) }
    }
    try eventually("the directory is about to be moved away") { pause.isReached }
    let isPresent = try guest.isPresent()
    pause.open()
    remover.join()
    #expect(isPresent)
    #expect(try container.guestNames() == [])
  }

  /// Until a beginning guest has its presence, a sweeper takes the guest for dead; a directory that
  /// cannot be removed at once stays in `staging/`.
  @Test func aGuestWhoseDirectoryIsMovedAwayGetsAnother() throws {
    let (made, pause) = (Heard<String>(), FaultPause())
    let rule = FaultRule(.ofdquery, path: "guests/", .pause(pause))
    let maker = try Thread("maker") { [container] in
      FaultPoints.with([rule]) {
        guard let guest = try? container.makeGuest() else { return }
        made.add(guest.home.escaped)
        guest.presence.release()
      }
    }
    try eventually("the presence is about to be taken") { pause.isReached }
    var swept = 0
    try FaultPoints.with([FaultRule(.unlink, persistent: true, .fail(.inputOutput))]) {
      swept = try container.sweepGuests()
    }
    pause.open()
    maker.join()
    #expect(swept == 1)
    #expect(made.count == 1)
    #expect(try container.guestNames() == made.all)
  }

  /// The file with the reason of a damaged value is no value, and a channel without one takes no
  /// space.
  @Test func theUsedSpaceIsThatOfTheValues() throws {
    let damaged = try container.folder(.damaged)
    for (name, text) in [("1.x.plist", "four"), ("1.x.reason", "a reason"), ("2.plist", "two")] {
      try damaged.descriptor.open(name, .writeOnlyNew, mode: 0o600).write(text)
    }
    let found = try container.damagedUsage()
    #expect(found.count == 2 && found.bytes == 7)
    let channels = try container.folder(.channels)
    for name in ["a", "b"] { try channels.descriptor.makeDirectory(name, mode: 0o700) }
    try channels.descriptor.open("a/value.plist", .writeOnlyNew, mode: 0o600).write("value")
    let used = try container.channelUsage()
    #expect(used.count == 1 && used.bytes == 5)
  }
}
