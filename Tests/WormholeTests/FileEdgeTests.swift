import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Files that another process changes, takes or replaces during a send or a take.
@Suite(.blocking) struct FileEdgeTests {
  /// The part that is cut off was a hole, and reading after the new end gives no bytes either.
  @Test func aFileTruncatedDuringTheSendIsNotSent() throws {
    let files = try FilePair()
    try files.make("log", size: 10 << 20)
    let log = try Descriptor.open(path: files.path("log"), [.writeOnly])
    try log.truncate(to: 40 << 20)
    let error = try failure {
      try files.phone.send(file: files.path("log")) { _ in
        try? log.truncate(to: 30 << 20)
        return .continue
      }
    }
    #expect(error.code == .conflict)
    try files.waitUntilNothingIsLeft()
  }

  /// A clone contains the appended bytes at first.
  @Test(arguments: [TestFileSystem.Kind.xfs, .ext4])
  func bytesAppendedBeforeTheCloneAreCutOff(_ kind: TestFileSystem.Kind) throws {
    let what = "what is appended before a copy on \(kind)"
    guard let disk = try TestFileSystem.make(kind, for: what) else { return }
    try makeFile(disk.path + "/log", size: 1 << 20)
    let before = try Digest(disk.path + "/log")
    var sum = Checksum()
    let content = try Descriptor.open(path: disk.path + "/log", [.readOnly]).contents()
    sum.add(content.span.bytes)
    do {
      let source = try Descriptor.open(path: disk.path + "/log", [.readOnly])
      let target = try Descriptor.open(
        path: disk.path + "/copy", [.readWrite, .create], mode: 0o600)
      try Descriptor.open(path: disk.path + "/log", [.writeOnly, .append]).write("one more line\n")
      let checksum = try FileCopy.copy(source, to: target, size: before.size) { _ in true }
      #expect(checksum == sum.value)
    }
    #expect(try Digest(disk.path + "/copy") == before)
    try disk.unmount()
  }

  /// The report after each step of the copy would cost more than the copy.
  @Test func theProgressIsReportedEveryEightMebibytesAndAtTheEnd() throws {
    let files = try FilePair()
    let size = 15 << 20
    try files.make("film", size: size)
    var reports: [Int] = []
    try files.phone.send(file: files.path("film"), .quick()) { progress in
      reports.append(progress.done)
      return .continue
    }
    #expect(reports.count == 2 && reports.last == size, "\(reports)")
  }

  /// The inbox is in its place, and is not blamed.
  @Test(arguments: [TransferMode.copying, .moving])
  func aFileWhoseCopyAnotherProgramRemovesIsNotSent(_ mode: TransferMode) throws {
    let files = try FilePair()
    try files.make("film", size: 1000)
    let staging = files.pair.meeting.path + "/staging"
    let error = try failure {
      try files.phone.send(file: files.path("film"), mode: mode, .quick()) { _ in
        #expect(throws: Never.self) {
          let folder = try Descriptor.open(path: staging, [.readOnly, .directory])
          for name in try folder.names() { try folder.unlink(name) }
        }
        return .continue
      }
    }
    #expect(error.code == .conflict)
    #expect(error.reason == "another program has removed the file's copy from the container")
    #expect(try Digest(files.path("film")).size == 1000)
    try files.waitUntilNothingIsLeft()
  }

  /// The member is made again without the copy, and the file is still at its path.
  @Test func aFileWhoseCopyIsRemovedWithTheMemberIsNotSent() throws {
    let files = try FilePair()
    try files.make("film", size: 1000)
    let (path, meeting) = (files.path("film"), files.pair.meeting)
    let printer = try meeting.another().peer("printer")
    let (pause, reasons) = (FaultPause(), Heard<String>())
    let sender = try Thread("sender") {
      FaultPoints.with([FaultRule(.rename, path: "printer/inbox/", .pause(pause))]) {
        do throws(WormholeError) {
          try printer.send(file: path)
          reasons.add("none")
        } catch {
          reasons.add(error.reason)
        }
      }
    }
    try eventually("the copy is in the member's directory") { pause.isReached }
    #expect(try run("rm", ["-r", meeting.path + "/members/printer"]).status == .exited(0))
    pause.open()
    sender.join()
    #expect(reasons.all == ["another program has removed the file's copy from the container"])
    #expect(try Digest(path).size == 1000)
    try files.waitUntilNothingIsLeft()
  }

  /// The copy is gone as well, and is not the cause.
  @Test func aFileWhoseContainerIsRemovedIsNotSent() throws {
    let files = try FilePair()
    try files.make("film", size: 1000)
    let container = files.pair.meeting.path
    let error = try failure {
      try files.phone.send(file: files.path("film"), .quick()) { _ in
        #expect(throws: Never.self) { _ = try run("rm", ["-r", container]) }
        return .continue
      }
    }
    #expect(!error.reason.contains("copy"), "\(error)")
    #expect(try Digest(files.path("film")).size == 1000)
  }

  // MARK: Moving

  /// The sent file is still there.
  @Test func aMissingFolderIsNotTakenForAFileThatWasMoved() throws {
    let files = try FilePair()
    try files.make("film", size: 1000)
    _ = try files.phone.send(file: files.path("film"))
    try files.handle { message in
      let file = try #require(message.file)
      let error = try failure { try file.move(to: files.path("none/film")) }
      #expect(error.code == .notFound && !error.reason.contains("moved"), "\(error)")
    }
  }

  /// A file with two hard links is copied, and then removed.
  @Test func movingRemovesNoOtherFileAtThePath() throws {
    let files = try FilePair()
    try files.make("film", size: 1 << 20)
    try files.folder.descriptor.link("film", to: files.folder.descriptor, "other")
    let before = try Digest(files.path("film"))
    var isReplaced = false
    let error = try failure {
      try files.phone.send(file: files.path("film"), mode: .moving) { _ in
        if !isReplaced {
          isReplaced = true
          try? files.folder.write("new", to: "new")
          #expect(throws: Never.self) {
            try files.folder.descriptor.rename("new", to: files.folder.descriptor, "film")
          }
        }
        return .continue
      }
    }
    #expect(isReplaced)
    #expect(error.code == .partlyDone)
    #expect(
      error.reason == "the file was sent, but could not be removed: another file has the path now")
    #expect(try files.folder.read("film") == "new")
    // The first file was sent.
    try files.handle { message in
      let after = try message.digest()
      #expect(after == before)
    }
    try files.waitUntilNothingIsLeft()
  }

  @Test func aFileThatCannotBeMovedKeepsItsMode() throws {
    let files = try FilePair()
    try files.make("film", size: 1000)
    let film = try Descriptor.open(path: files.path("film"), [.readOnly])
    try film.setMode(0o640)
    let rule = FaultRule(.rename, path: "inbox/", persistent: true, .fail(.inputOutput))
    var error: WormholeError?
    try FaultPoints.with([rule]) {
      error = try failure { try files.phone.send(file: files.path("film"), mode: .moving) }
    }
    #expect(error?.errno == Errno.inputOutput.rawValue)
    #expect(try film.status().mode & 0o777 == 0o640)
    #expect(try film.status().links == 1)
    #expect(try files.folder.descriptor.names() == ["film"])
    try files.waitUntilNothingIsLeft()
  }

  // MARK: Taking

  @Test func aGroupsFileThatOtherUsersMayWriteIsRefused() throws {
    let files = try FilePair { $0.sharing = .group }
    try files.make("film", size: 1000)
    try files.phone.send(file: files.path("film"))
    try files.handle { message in
      let file = try #require(message.file)
      let inside = try Descriptor.open(path: file.path, [.readOnly])
      let mode = try inside.status().mode & 0o777
      try inside.setMode(mode | 0o002)
      let error = try? failure { try file.move(to: files.path("taken")) }
      #expect(error?.code == .refused)
      #expect(error?.reason.contains("unauthorized users may write to the file") == true)
      guard error != nil else { return }
      try inside.setMode(mode)
      try file.move(to: files.path("taken"))
    }
    #expect(try Digest(files.path("taken")) == Digest(files.path("film")))
  }

  /// An incomplete copy has a fixed name, so that a later attempt finds what a killed one left: it
  /// must not remove the copy of an attempt that has created its file and not locked it yet.
  @Test(arguments: [1, 2])
  func twoConcurrentTakesOfAFileDoNotCollide(openings: Int) throws {
    guard let other = try AnotherFileSystem() else { return }
    let files = try FilePair()
    try files.make("film", size: 1000)
    let before = try Digest(files.path("film"))
    var taken = ["first", "second"]
    try files.phone.send(file: files.path("film"))
    try files.handle { message in
      let file = try #require(message.file)
      // The first opening looks for a copy that was left, the second creates one.
      let slow = FaultRule(
        .open, path: other.path + "/.wormhole-", number: openings, moment: .after,
        .delay(milliseconds: 2000))
      let isDelayed = Monitor(false)
      let failure = Monitor<String?>("did not end")
      let first = try Thread("first") {
        FaultPoints.with([slow]) {
          isDelayed.withLock { $0 = true }
          let result = Result { try file.move(to: other.path + "/first") }
          failure.withLock { failure in
            failure = nil
            if case .failure(let error) = result { failure = "\(error)" }
          }
        }
      }
      try eventually("the first has begun") { isDelayed.withLock { $0 } }
      if openings == 2 {
        try eventually("the first has created its copy") { try !other.names().isEmpty }
      }
      // The second attempt is in the middle of its copy until the first has ended.
      do throws(WormholeError) {
        try file.move(to: other.path + "/second") { _ in
          try? eventually("the first has ended") { failure.withLock { $0 != "did not end" } }
          return .continue
        }
      } catch {
        // On a machine that is busy, the first attempt can be over before the second begins.
        #expect(error.reason.contains("was moved already"))
        taken = ["first"]
      }
      first.join()
      #expect(failure.withLock { $0 } == nil)
    }
    #expect(try other.names().sorted() == taken)
    for name in try other.names() { #expect(try Digest("\(other.path)/\(name)") == before) }
  }

  /// The lock on an incomplete copy shows that its process lives.
  @Test func aCopyInProgressIsNotRemovedByAnotherTake() throws {
    guard let other = try AnotherFileSystem() else { return }
    let files = try FilePair()
    try files.make("film", size: 1000)
    let before = try Digest(files.path("film"))
    try files.phone.send(file: files.path("film"))
    try files.handle { message in
      let file = try #require(message.file)
      let second = Monitor<String?>("not taken")
      let first = Result {
        try file.move(to: other.path + "/first") { _ in
          let result = Result { try file.move(to: other.path + "/second") }
          second.withLock { second in
            if case .failure(let error) = result { second = "\(error)" } else { second = nil }
          }
          return .continue
        }
      }
      #expect(throws: Never.self) { try first.get() }
      #expect(second.withLock { $0 } == nil)
    }
    #expect(try other.names().sorted() == ["first", "second"])
    for name in try other.names() { #expect(try Digest("\(other.path)/\(name)") == before) }
  }
}
