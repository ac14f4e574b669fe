import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Files between two members of one container.
@Suite(.blocking) struct FileTests {
  static let isLong = TestRun.isLong

  @Test(arguments: [0, 1, 100, 262_143, 262_144, 262_145, 64 << 20])
  func arrivesAsItWas(_ size: Int) throws {
    try sendAndReceive(size)
  }

  /// The kernel makes the content of this file during the read; before, its size is 0.
  @Test func aFileThatSaysItIsEmptyArrivesWhole() throws {
    let path = "/proc/filesystems"
    let bytes = try Descriptor.open(path: path, [.readOnly]).contents()
    #expect(!bytes.isEmpty)
    let files = try FilePair()
    let sent = try files.phone.send(file: path)
    #expect(try sent.file?.size == bytes.count)
    try files.handle { message in
      let file = try #require(message.file)
      #expect(file.size == bytes.count)
      #expect(try Descriptor.open(path: file.path, [.readOnly]).contents() == bytes)
    }
    try files.waitUntilNothingIsLeft()
  }

  @Test(.enabled(if: FileTests.isLong, "WORMHOLE_LONG=1 lets it run"))
  func aGigabyteArrives() throws {
    try sendAndReceive(1 << 30)
  }

  private func sendAndReceive(_ size: Int) throws {
    let files = try FilePair()
    try files.make("report.pdf", size: size)
    let before = try Digest(files.path("report.pdf"))
    let sent = try files.phone.send(
      file: files.path("report.pdf"), metadata: Order(film: "Metropolis", seats: []))
    try files.handle { message in
      #expect(message.kind == "Order")
      #expect(try message.value(as: Order.self).film == "Metropolis")
      let file = try #require(message.file)
      #expect(file.name == "report.pdf" && file.size == size)
      #expect(try file.exists)
      #expect(try Digest(file.path) == before)
      #expect(try file.metadata(as: Order.self)?.film == "Metropolis")
    }
    #expect(try sent.waitForEnd() == .delivered)
    try files.waitUntilNothingIsLeft()
    #expect(try Digest(files.path("report.pdf")) == before)
  }

  /// The file is lent under its sender's name, may be moved away, and remains if the handler fails.
  @Test func aFileIsLentUnderItsName() throws {
    let files = try FilePair()
    try files.make("report 1.pdf", size: 300_000)
    let before = try Digest(files.path("report 1.pdf"))
    let sent = try files.phone.send(file: files.path("report 1.pdf"))
    var attempts: [Int] = []
    let relay = Relay<Message>()
    let receiving = try files.watch.receive { try relay.pass($0) }
    try relay.handle("the second attempt") { message in
      let file = try #require(message.file)
      let lent = try file.withOriginalName { path in
        #expect(path.hasSuffix("/report 1.pdf"))
        #expect(try Digest(path) == before)
        if message.attempt == 2 {
          let folder = try Descriptor.open(path: files.folder.path, [.readOnly, .directory])
          try Descriptor.open(
            path: String(path.dropLast("/report 1.pdf".count)), [.readOnly, .directory]
          ).rename("report 1.pdf", to: folder, "moved")
        }
        return path
      }
      #expect((try? Digest(lent)) == nil)
      attempts.append(message.attempt)
      #expect(throws: Refusal.self) { try file.withOriginalName { _ in throw Refusal() } }
      if message.attempt == 1 { throw Refusal() }
    }
    #expect(try sent.waitForEnd() == .delivered)
    receiving.stop()
    #expect(attempts == [1, 2])
    #expect(try Digest(files.path("moved")) == before)
    try files.waitUntilNothingIsLeft()
  }

  /// Names that programs read as two names, as an option, or as another name.
  @Test(arguments: [
    ("-rf", "_rf"), ("a\nb", "a_b"), ("-\u{301}", "_\u{301}"), ("--\u{1b}[31m", "_-_[31m"),
    ("exe.\u{202e}gpj", "exe._gpj"), ("\n", "_"), (".bashrc", ".bashrc"), ("a-b c", "a-b c"),
  ])
  func aNameThatProgramsMisreadIsReplaced(_ name: String, _ received: String) throws {
    let files = try FilePair()
    try files.make(name, size: 3)
    let sent = try files.phone.send(file: files.path(name))
    #expect(try sent.file?.name == name)
    try files.handle { message in
      let file = try #require(message.file)
      #expect(file.name.unicodeScalars.elementsEqual(received.unicodeScalars))
      try file.withOriginalName { path in
        #expect(path.utf8.reversed().starts(with: received.utf8.reversed()))
      }
    }
    #expect(try sent.waitForEnd() == .delivered)
  }

  @Test func aFileNeedsNoMetadata() throws {
    let files = try FilePair()
    try files.make("a", size: 10)
    try files.phone.send(file: files.path("a"))
    try files.handle { message in
      #expect(message.kind == "file")
      let metadata = try #require(message.file).metadata(as: Order.self)
      #expect(metadata == nil)
      #expect(throws: WormholeError.self) { try message.value(as: Order.self) }
    }
    try files.pair.phone.send(1)
    try files.handle { #expect($0.file == nil) }
  }

  @Test func holesStayHoles() throws {
    let files = try FilePair()
    let size = 64 << 30
    let source = try files.folder.descriptor.open("holes", [.readWrite, .create], mode: 0o600)
    try source.write("begin")
    try source.truncate(to: size)
    let words = Array("middle".utf8)
    try source.writeFully(words.span.bytes, at: size / 2)
    try files.phone.send(file: files.path("holes"))
    let name = try #require(try files.names("files").first)
    let sent = try Descriptor.open(path: files.home("files/" + name), [.readOnly])
    // A receiver would not get a file of another size at all.
    try #require(try sent.status().size == size)
    try files.handle { message in
      let path = try #require(message.file).path
      let file = try Descriptor.open(path: path, [.readOnly])
      #expect(try file.status().size == size)
      #expect(try file.nextHole(from: 0) ?? size < size / 2)
      #expect(try file.nextData(from: 1 << 20) ?? size > size / 4)
      #expect(try Digest(path) == Digest(files.path("holes")))
      try #require(message.file).move(to: files.path("taken"))
    }
    let taken = try Descriptor.open(path: files.path("taken"), [.readOnly])
    #expect(try taken.nextHole(from: 0) ?? size < size / 2)
  }

  // MARK: Changes during the send

  @Test func whatIsAppendedMeanwhileStaysBehind() throws {
    let files = try FilePair()
    let size = 20 << 20
    try files.make("log", size: size)
    let before = try Digest(files.path("log"))
    var calls = 0
    try files.phone.send(file: files.path("log")) { progress in
      calls += 1
      #expect(progress.name == "log" && progress.total == size)
      let file = try? Descriptor.open(path: files.path("log"), [.writeOnly, .append])
      _ = try? file?.write("one more line\n")
      return .continue
    }
    #expect(calls > 1)
    #expect(try Digest(files.path("log")) != before, "something was appended")
    try files.handle { message in
      let after = try message.digest()
      #expect(after == before)
    }
  }

  @Test func aFileThatIsCutMeanwhileIsNotSent() throws {
    let files = try FilePair()
    try files.make("log", size: 20 << 20)
    let error = try failure {
      try files.phone.send(file: files.path("log")) { _ in
        try? Descriptor.open(path: files.path("log"), [.writeOnly]).truncate(to: 9 << 20)
        return .continue
      }
    }
    #expect(error.code == .conflict)
    try files.waitUntilNothingIsLeft()
  }

  @Test(arguments: [TransferMode.copying, .moving])
  func whatIsCancelledMeanwhileIsNotSent(_ mode: TransferMode) throws {
    let files = try FilePair()
    try files.make("film", size: 20 << 20)
    let before = try Digest(files.path("film"))
    let error = try failure {
      try files.phone.send(file: files.path("film"), mode: mode) {
        $0.done > 8 << 20 ? .cancel : .continue
      }
    }
    #expect(error.code == .cancelled)
    try files.waitUntilNothingIsLeft()
    #expect(try Digest(files.path("film")) == before)
  }

  @Test func oneReusedPathIsManyFiles() throws {
    let files = try FilePair()
    for number in 0..<200 {
      try files.folder.write("this is number \(number)", to: "reused")
      try files.phone.send(file: files.path("reused"), metadata: number)
    }
    let (heard, texts) = (Heard<Int>(), Heard<String>())
    let receiving = try files.watch.receive(Int.self) { number, message in
      guard let path = message.file?.path else { throw Missing() }
      let bytes = try Descriptor.open(path: path, [.readOnly]).contents()
      texts.add(String(decoding: bytes, as: UTF8.self))
      heard.add(number)
    }
    try heard.wait("all of them") { $0 == Array(0..<200) }
    receiving.stop()
    #expect(texts.all == (0..<200).map { "this is number \($0)" })
    try files.waitUntilNothingIsLeft()
  }

  // MARK: Files that can be sent

  @Test func onlyRegularFilesAreSent() throws {
    let files = try FilePair()
    try files.folder.descriptor.makeDirectory("directory", mode: 0o700)
    try files.folder.descriptor.makeFIFO("fifo", mode: 0o600)
    try files.folder.descriptor.makeSocket("socket", mode: 0o600)
    try files.folder.descriptor.makeSymbolicLink("circle", to: "circle")
    for name in ["directory", "directory/", "fifo", "socket", "circle", "."] {
      let error = try failure { try files.phone.send(file: files.path(name)) }
      #expect(error.code == .refused, "\(name): \(error)")
      #expect("\(error)".hasPrefix("cannot send file '\(files.path(name))': "))
    }
    #expect(try failure { try files.phone.send(file: "/dev/null") }.code == .refused)
    for name in ["nothing", "nothing/at/all", "a\0b"] {
      let error = try failure { try files.phone.send(file: files.path(name)) }
      #expect(error.code == .notFound, "\(name): \(error)")
    }
    try files.waitUntilNothingIsLeft()
  }

  @Test func aFileThatMayNotBeReadIsRefused() throws {
    let files = try FilePair()
    try files.make("secret", size: 10)
    let rule = FaultRule(.open, path: files.path("secret"), .fail(.accessDenied))
    var error: WormholeError?
    try FaultPoints.with([rule]) {
      error = try failure { try files.phone.send(file: files.path("secret")) }
    }
    #expect(error?.code == .permissionDenied)
    guard Processes.effectiveUser != 0 else {
      return skip("a file that its mode keeps from being read", because: "root reads everything")
    }
    try Descriptor.open(path: files.path("secret"), [.readOnly]).setMode(0o200)
    #expect(
      try failure { try files.phone.send(file: files.path("secret")) }.code == .permissionDenied)
    try files.waitUntilNothingIsLeft()
  }

  @Test func aLinkOfTheUsersOwnIsFollowed() throws {
    let files = try FilePair()
    try files.make("real", size: 10)
    try files.folder.descriptor.makeSymbolicLink("link", to: "real")
    try files.phone.send(file: files.path("link"))
    try files.handle { message in
      #expect(message.file?.name == "link")
      let sent = try message.digest()
      #expect(try sent == Digest(files.path("real")))
    }
  }

  // MARK: Moving

  @Test func aMovedFileIsTheFileItself() throws {
    let files = try FilePair()
    try files.make("film", size: 1 << 20)
    let before = try files.folder.descriptor.status(of: "film")
    try files.phone.send(file: files.path("film"), mode: .moving)
    #expect(try files.folder.descriptor.names() == [])
    try files.handle { message in
      try #require(message.file).move(to: files.path("arrived"))
    }
    #expect(try files.folder.descriptor.status(of: "arrived").isSameFile(as: before))
    try files.waitUntilNothingIsLeft()
  }

  /// A process that uses the second name could change the content.
  @Test func aFileWithTwoNamesIsCopiedAndRemoved() throws {
    let files = try FilePair()
    try files.make("film", size: 1 << 20)
    try files.folder.descriptor.link("film", to: files.folder.descriptor, "other")
    try files.folder.descriptor.makeSymbolicLink("link", to: "other")
    let other = try Digest(files.path("other"))
    try files.phone.send(file: files.path("film"), mode: .moving)
    #expect(try files.folder.descriptor.names().sorted() == ["link", "other"])
    try files.handle { message in
      let path = try #require(message.file).path
      #expect(try Digest(path) == other)
      #expect(try Descriptor.open(path: path, [.readOnly]).status().links == 1)
    }
    let error = try failure { try files.phone.send(file: files.path("link"), mode: .moving) }
    #expect(error.code == .refused, "\(error)")
    #expect(try files.folder.descriptor.names().sorted() == ["link", "other"])
  }

  @Test(arguments: [TransferMode.copying, .moving])
  func fromAndToAnotherFileSystem(_ mode: TransferMode) throws {
    guard let other = try AnotherFileSystem() else { return }
    let files = try FilePair()
    try makeFile(other.path + "/film", size: 10 << 20)
    let before = try Digest(other.path + "/film")
    try files.phone.send(file: other.path + "/film", mode: mode)
    #expect((try? Digest(other.path + "/film")) == (mode == .moving ? nil : before))
    try files.handle { message in
      let file = try #require(message.file)
      #expect(try Digest(file.path) == before)
      try file.move(to: other.path + "/taken")
      #expect(try !file.exists)
    }
    #expect(try Digest(other.path + "/taken") == before)
    #expect(try other.names().allSatisfy { !$0.hasPrefix(".") })
    try files.waitUntilNothingIsLeft()
  }
}

/// A directory on another file system than the container's: in memory, or on a disk.
final class AnotherFileSystem: Sendable {
  let path: String
  private let directory: Descriptor

  /// Prints a note and returns nil if no other file system exists.
  init?() throws {
    let (places, here) = (["/dev/shm", "/var/tmp"], try TemporaryDirectory())
    let other = try places.first { place in
      guard let there = try? Descriptor.open(path: place, [.readOnly, .directory]) else {
        return false
      }
      return try there.status().device != here.descriptor.status().device
    }
    guard let other else {
      skip("files on another file system", because: "there is no other at \(places)")
      return nil
    }
    path = other + "/wormhole-test-\(Processes.current)-\(Clocks.sinceBoot)"
    try Descriptor.makeDirectory(path: path, mode: 0o700)
    directory = try Descriptor.open(path: path, [.readOnly, .directory])
  }

  func names() throws -> [String] { try directory.names() }

  deinit {
    try? directory.removeContents()
    try? Descriptor.removeDirectory(path: path)
  }
}
