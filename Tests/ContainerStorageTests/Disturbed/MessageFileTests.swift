import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Files of messages that are damaged, or cannot be moved out, and the file that marks messages.
@Suite(.blocking) struct MessageFileTests {
  private typealias Problem = MemberDirectory.AttachmentProblem

  private let folder: TemporaryDirectory
  private let home: MemberDirectory
  private static let text = "the content"

  init() throws {
    let (folder, container) = try Container.forTest()
    self.folder = folder
    home = try container.member("a")
  }

  /// A member of a container that a group shares.
  private func groupsHome() throws -> MemberDirectory {
    var options = ContainerOptions.testing()
    options.sharing = .group
    return try Container.open(folder.path + "/g", options: options).member("a")
  }

  private func put(_ bytes: [UInt8] = Array(Self.text.utf8), in home: MemberDirectory) throws {
    try home.part(.files).descriptor.open("x", .writeOnlyNew, mode: 0o600).write(bytes)
  }

  private func taking(
    _ durability: Durability = .process, replacing: Bool = false
  ) -> MemberDirectory.TakeOptions {
    var sum = Checksum()
    sum.add(Self.text.utf8.span.bytes)
    return MemberDirectory.TakeOptions(
      name: "x", size: Self.text.utf8.count, checksum: sum.value, durability: durability,
      isReplacing: replacing)
  }

  private var target: UserPath { UserPath(folder.path + "/out") }

  private func files(of home: MemberDirectory) throws -> [String] {
    try home.part(.files).descriptor.names()
  }

  /// What is in the test's directory beside the containers.
  private func outside() throws -> [String] {
    try folder.descriptor.names().filter { !["c", "g"].contains($0) }
  }

  // MARK: Reading

  @Test func aFileOfAnotherUserIsRefused() throws {
    guard Processes.effectiveUser == 0 else {
      skip("a message's file of another user", because: "only root can make one")
      return
    }
    try put(in: home)
    let path = "\(folder.path)/c/members/a/files/x"
    #expect(try run("chown", ["12345", path]).status == .exited(0))
    let size = Self.text.utf8.count
    #expect(throws: Problem.refused("the file belongs to user 12345")) {
      _ = try home.openAttachment("x", size: size)
    }
  }

  /// The users of a group send files to each other; any other file of another user was planted.
  @Test func onlyAGroupsMemberReadsAFileOfAnotherUser() throws {
    guard Processes.effectiveUser == 0 else {
      skip("a group's file of another user", because: "only root can make one")
      return
    }
    let groups = try groupsHome()
    for (owner, name) in [(home, "c"), (groups, "g")] {
      try put(in: owner)
      let path = "\(folder.path)/\(name)/members/a/files/x"
      #expect(try run("chown", ["12345", path]).status == .exited(0))
    }
    #expect(try groups.read("x", in: .files, at: 4, count: 7) == Array("content".utf8))
    #expect(try home.read("x", in: .files, at: 4, count: 7) == nil)
    #expect(throws: Never.self) {
      _ = try groups.openAttachment("x", size: Self.text.utf8.count)
    }
  }

  /// The first two sizes are below what was read before the truncation.
  @Test(arguments: [0, 1 << 20, 8 << 20 + 5])
  func aFileThatIsTruncatedWhileItIsReadIsDamaged(_ left: Int) throws {
    let size = 9 << 20
    try put([UInt8](repeating: 1, count: size), in: home)
    let path = "\(folder.path)/c/members/a/files/x"
    let problem = #expect(throws: Problem.self) {
      try home.verifyAttachment("x", size: size, checksum: 0) { done in
        guard done < size else { return true }
        try? Descriptor.open(path: path, [.writeOnly]).truncate(to: left)
        return true
      }
    }
    #expect(
      problem == .damaged("the file was truncated to \(left) bytes, and \(size) were sent"))
  }

  @Test func aCheckCanBeCancelled() throws {
    try put(in: home)
    let taking = taking()
    #expect(throws: Problem.cancelled) {
      try home.verifyAttachment("x", size: taking.size, checksum: taking.checksum) { _ in false }
    }
    try home.verifyAttachment("x", size: taking.size, checksum: taking.checksum) { _ in true }
  }

  // MARK: Moving out

  @Test func aMovedFileWhoseNameCannotBeSyncedIsNotDurable() throws {
    try put(in: home)
    FaultPoints.with([FaultRule(.fsync, .fail(.inputOutput))]) {
      #expect(throws: Problem.notDurable(.inputOutput)) {
        try home.takeAttachment(taking(.power), to: target) { _ in true }
      }
    }
    #expect(try folder.read("out") == Self.text)
    #expect(try files(of: home) == [])
  }

  /// The message and the user would otherwise share one file, which the user may change.
  @Test func inAGroupAMovedFileThatIsNotDurableIsTheUsersAlone() throws {
    let home = try groupsHome()
    try put(in: home)
    FaultPoints.with([FaultRule(.fsync, .fail(.inputOutput))]) {
      #expect(throws: Problem.notDurable(.inputOutput)) {
        try home.takeAttachment(taking(.power), to: target) { _ in true }
      }
    }
    #expect(try folder.read("out") == Self.text)
    #expect(try outside() == ["out"])
    #expect(try files(of: home) == [])
  }

  @Test func inAGroupAFileThatCannotBeLinkedIsCopied() throws {
    let home = try groupsHome()
    try put(in: home)
    let before = try home.part(.files).descriptor.status(of: "x").inode
    try FaultPoints.with([FaultRule(.link, path: "/out", .fail(.notPermitted))]) {
      try home.takeAttachment(taking(), to: target) { _ in true }
    }
    #expect(try folder.read("out") == Self.text)
    #expect(try outside() == ["out"])
    #expect(try files(of: home) == [])
    // While the copy was made, the original existed.
    #expect(try folder.descriptor.status(of: "out").inode != before)
  }

  @Test func inAGroupNoFileOfTheUserIsReplacedUnasked() throws {
    let home = try groupsHome()
    try put(in: home)
    try folder.write("mine", to: "out")
    #expect(throws: Problem.system(.fileExists)) {
      try home.takeAttachment(taking(), to: target) { _ in true }
    }
    #expect(try folder.read("out") == "mine")
    #expect(try files(of: home) == ["x"])
    // Asked to replace, and failing in the last step.
    FaultPoints.with([FaultRule(.rename, path: "/out", .fail(.inputOutput))]) {
      #expect(throws: Problem.system(.inputOutput)) {
        try home.takeAttachment(taking(replacing: true), to: target) { _ in true }
      }
    }
    #expect(try folder.read("out") == "mine")
    #expect(try outside() == ["out"])
    #expect(try files(of: home) == ["x"])
    try home.takeAttachment(taking(replacing: true), to: target) { _ in true }
    #expect(try folder.read("out") == Self.text)
    #expect(try outside() == ["out"])
    #expect(try files(of: home) == [])
  }

  @Test(arguments: [
    FaultRule(.rename, path: "/out", .fail(.inputOutput)), FaultRule(.fsync, .fail(.inputOutput)),
  ])
  func aCopyThatCannotBeFinishedLeavesNothing(_ rule: FaultRule) throws {
    try put(in: home)
    FaultPoints.with([rule]) {
      #expect(throws: Problem.system(.inputOutput)) {
        _ = try home.copyAttachment(taking(.power), to: target) { _ in true }
      }
    }
    #expect(try outside() == [])
    #expect(try files(of: home) == ["x"])
  }

  /// Another attempt makes its copy under the usual hidden name at the same time.
  @Test func aCopyWhoseHiddenNameIsTakenGetsAnother() throws {
    try put(in: home)
    // The first call looks for the copy of an earlier attempt.
    let hidden = "/.wormhole-"
    let taken = FaultRule(.open, path: hidden, number: 2, .fail(.fileExists))
    let calls = try FaultPoints.with([taken]) {
      _ = try home.copyAttachment(taking(), to: target) { _ in true }
    }
    #expect(calls.count { $0.hasPrefix("open ") && $0.contains(hidden) } == 3, "\(calls)")
    #expect(try folder.read("out") == Self.text)
    #expect(try outside() == ["out"])
    try folder.descriptor.unlink("out")
    let all = FaultRule(.open, path: hidden, number: 2, persistent: true, .fail(.fileExists))
    FaultPoints.with([all]) {
      #expect(throws: Problem.system(.fileExists)) {
        _ = try home.copyAttachment(taking(), to: target) { _ in true }
      }
    }
    #expect(try outside() == [])
    #expect(try files(of: home) == ["x"])
  }

  /// A repetition after a crash finds the name taken, and a folder may have been removed by hand.
  @Test func aSecondNameIsGivenOnce() throws {
    let other = try home.part(.inbox)
    _ = try other.descriptor.open("source", .writeOnlyNew, mode: 0o600)
    for _ in 1...2 { #expect(try home.link("source", of: other, to: .files, as: "x")) }
    #expect(try files(of: home) == ["x"])
    #expect(try other.descriptor.status(of: "source").links == 2)
    try home.part(.files).descriptor.unlink("x")
    try home.home.descriptor.removeDirectory("files")
    #expect(try home.link("source", of: other, to: .files, as: "x"))
    #expect(try files(of: home) == ["x"])
    #expect(try !home.link("none", of: other, to: .files, as: "y"))
    #expect(try files(of: home) == ["x"])
  }

  // MARK: Lending

  @Test func aFileThatCannotBeLinkedIsLentAsACopy() throws {
    try put(in: home)
    let original = try home.part(.files).descriptor.status(of: "x").inode
    let size = Self.text.utf8.count
    for (rules, isCopy) in [
      ([], false), ([FaultRule(.link, path: "/poster.txt", .fail(.crossDevice))], true),
    ] as [([FaultRule], Bool)] {
      try FaultPoints.with(rules) {
        let lent = try home.lendAttachment("x", size: size, as: "poster.txt") { path in
          let file = try Descriptor.open(path: path, [.readOnly])
          #expect(path.hasSuffix("/poster.txt"))
          #expect(try file.contents() == Array(Self.text.utf8))
          return try file.status().inode
        }
        #expect(try (lent.get() != original) == isCopy)
      }
      #expect(try folder.descriptor.open("c/staging", .readOnlyDirectory).names() == [])
    }
    FaultPoints.with([FaultRule(.link, path: "/poster.txt", .fail(.noSuchFile))]) {
      #expect(throws: Problem.missing) {
        _ = try home.lendAttachment("x", size: size, as: "poster.txt") { _ in }
      }
    }
    #expect(try files(of: home) == ["x"])
  }

  // MARK: Progress

  private static let page = 4096
  private static let progressName = MemberDirectory.progressName

  private func makeProgress(_ pages: Int) throws -> Int {
    let bytes = [UInt8](repeating: 0, count: pages * Self.page)
    return try home.makeProgress(Self.progressName, bytes, page: Self.page).count
  }

  private func progress() throws -> FileStatus {
    try home.home.descriptor.status(of: Self.progressName)
  }

  @Test func whereSpaceCannotBeReservedItIsWritten() throws {
    #expect(try makeProgress(1) == 1)
    let size = Self.page
    FaultPoints.with([FaultRule(.fallocate, .fail(.noSpace))]) {
      #expect(throws: Errno.noSpace) {
        _ = try home.extendProgress(Self.progressName, size: size, page: size)
      }
    }
    #expect(try progress().size == size)
    var added = 0
    let calls = try FaultPoints.with([FaultRule(.fallocate, .fail(.notSupported))]) {
      added = try home.extendProgress(Self.progressName, size: size, page: size).size
    }
    #expect(added == size)
    #expect(calls.contains { $0.hasPrefix("pwrite ") }, "\(calls)")
    #expect(try progress().size == 2 * size)
    // Another program could write to the file under a second name.
    try home.home.descriptor.link(Self.progressName, to: folder.descriptor, "second")
    #expect(throws: Errno.notPermitted) {
      _ = try home.extendProgress(Self.progressName, size: 2 * size, page: size)
    }
    #expect(try progress().size == 2 * size)
  }

  /// The file has its new size already when no descriptor is left for the page.
  @Test func anExtensionThatFailsAtItsEndIsRepeated() throws {
    #expect(try makeProgress(1) == 1)
    let size = Self.page
    for rules in [
      [FaultRule(.duplicate, .fail(.tooManyOpenFiles))],
      [FaultRule(.fallocate, .fail(.notSupported)), FaultRule(.duplicate, .fail(.noMemory))],
    ] {
      FaultPoints.with(rules) {
        #expect(throws: Errno.self) {
          _ = try home.extendProgress(Self.progressName, size: size, page: size)
        }
      }
      #expect(try progress().size == 2 * size)
    }
    let added = try home.extendProgress(Self.progressName, size: size, page: size).size
    #expect(added == size)
    #expect(try progress().size == 2 * size)
  }

  /// Another user could mark messages as processed.
  @Test func progressThatOtherUsersMayWriteToIsNotUsed() throws {
    #expect(try makeProgress(1) == 1)
    let size = Self.page
    let full = FaultRule(.open, path: "/staging/", .fail(.noSpace))
    func setMode(_ mode: FileMode) throws {
      try home.home.descriptor.open(Self.progressName, [.readWrite]).setMode(mode)
    }
    for mode: FileMode in [0o602, 0o620, 0o660] {
      try setMode(mode)
      #expect(throws: Errno.notPermitted, "mode \(String(mode, radix: 8))") {
        _ = try home.extendProgress(Self.progressName, size: size, page: size)
      }
      try FaultPoints.with([full]) {
        let error = try failure { _ = try makeProgress(1) }
        #expect(error.code == .full)
      }
      #expect(try progress().size == size)
    }
    // Others may read the file.
    try setMode(0o644)
    let added = try home.extendProgress(Self.progressName, size: size, page: size).size
    #expect(added == size)
    #expect(try progress().size == 2 * size)
  }

  @Test func onAFullDiskTheOldProgressIsUsedIfItFits() throws {
    #expect(try makeProgress(2) == 2)
    let before = try progress().inode
    let full = FaultRule(.open, path: "/staging/", .fail(.noSpace))
    var pages = 0
    try FaultPoints.with([full]) { pages = try makeProgress(2) }
    #expect(pages == 2)
    #expect(try progress().inode == before)
    try FaultPoints.with([full]) {
      let error = try failure { _ = try makeProgress(1) }
      #expect(error.code == .full)
    }
    #expect(try progress().inode == before)
    #expect(try progress().size == 2 * Self.page)
  }
}
