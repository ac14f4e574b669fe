import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The file of a settled message, and files that differ from the sent file.
@Suite(.blocking) struct FileEndTests {
  private func one(
    _ options: SendOptions = SendOptions(), size: Int = 1000
  ) throws -> (FilePair, Sent) {
    let files = try FilePair()
    try files.make("film", size: size)
    return (files, try files.phone.send(file: files.path("film"), metadata: 7, options))
  }

  @Test(arguments: [true, false])
  func cancellingRemovesIt(_ wantsOutcome: Bool) throws {
    var options = SendOptions()
    options.wantsOutcome = wantsOutcome
    let (files, sent) = try one(options)
    #expect(try files.names("files").count == 1)
    #expect(try sent.cancel() == .cancelled)
    try files.waitUntilNothingIsLeft()
  }

  @Test func expiringRemovesIt() throws {
    var options = SendOptions()
    options.timeToLive = .zero
    let (files, sent) = try one(options)
    let came = Heard<String>()
    let receiving = try files.watch.receive { came.add($0.kind) }
    #expect(try sent.waitForEnd() == .expired)
    try files.waitUntilNothingIsLeft()
    receiving.stop()
    #expect(came.all == [])
  }

  @Test func givingUpKeepsItAndItCanComeAgain() throws {
    let (files, sent) = try one()
    let before = try Digest(files.path("film"))
    let refusing = try files.watch.receive { _ in throw Refusal() }
    guard case .deadLettered = try sent.waitForEnd() else {
      Issue.record("\(String(describing: sent.status))")
      return
    }
    refusing.stop()
    #expect(try files.names("files").count == 1)
    #expect(try files.phone.retry(id: sent.id))
    try files.handle { message in
      #expect(try message.digest() == before)
      try #require(message.file).move(to: files.path("taken"))
    }
    #expect(try Digest(files.path("taken")) == before)
    try files.waitUntilNothingIsLeft()
  }

  @Test func discardingRemovesIt() throws {
    let (files, sent) = try one()
    let refusing = try files.watch.receive { _ in throw Refusal() }
    _ = try sent.waitForEnd()
    refusing.stop()
    #expect(try files.names("files").count == 1)
    #expect(try files.phone.discard(id: sent.id))
    #expect(try files.names("files").isEmpty, "at once, and not with the next sweep")
    try files.waitUntilNothingIsLeft()
  }

  // MARK: Damage

  /// Kinds of damage that a file may have.
  enum Damage: String, CaseIterable, Sendable {
    case changed, cut, longer, missing, fifo, socket, link, directory

    func inflict(on name: String, in files: FilePair) throws {
      let folder = try Descriptor.open(path: files.home("files"), [.readOnly, .directory])
      switch self {
      case .changed:
        let byte: [UInt8] = [0]
        let file = try folder.open(name, [.readWrite])
        var old = [UInt8](repeating: 0, count: 1)
        _ = try old.withUnsafeMutableBytes { try file.readFully(into: $0, at: 500) }
        let new = old == byte ? [1] : byte
        try file.writeFully(new.span.bytes, at: 500)
        return
      case .cut: return try folder.open(name, [.writeOnly]).truncate(to: 999)
      case .longer: return try folder.open(name, [.writeOnly]).truncate(to: 1001)
      default: break
      }
      try folder.unlink(name)
      switch self {
      case .fifo: try folder.makeFIFO(name, mode: 0o600)
      case .socket: try folder.makeSocket(name, mode: 0o600)
      case .link: try folder.makeSymbolicLink(name, to: files.path("film"))
      case .directory: try folder.makeDirectory(name, mode: 0o700)
      default: break
      }
    }
  }

  @Test(arguments: Damage.allCases)
  func whatIsDamagedIsGivenUp(_ damage: Damage) throws {
    let (files, sent) = try one()
    try damage.inflict(on: try #require(try files.names("files").first), in: files)
    let came = Heard<String>()
    let receiving = try files.watch.receive { came.add($0.kind) }
    guard case .deadLettered(let reason) = try sent.waitForEnd() else {
      Issue.record("\(String(describing: sent.status))")
      return
    }
    #expect(reason.hasPrefix("the file of the message is "), "\(reason)")
    receiving.stop()
    #expect(came.all == [])
  }

  @Test(arguments: [
    "", ".", "..", "a/b", "/etc/passwd", "a\0b", String(repeating: "x", count: 256),
  ])
  func aNameThatLeadsElsewhereIsGivenUp(_ name: String) throws {
    let (files, sent) = try one()
    let message = try #require(try files.names("inbox").first)
    let forged = PropertyListValue.dictionary([
      "kind": .string("Int"), "to": .string("watch"),
      "sent": .date(Date(timeIntervalSinceReferenceDate: 0)),
      "file": .dictionary(["name": .string(name), "size": .integer(1000), "checksum": .integer(0)]),
    ])
    try files.pair.meeting.overwrite(
      "members/watch/inbox/\(message)", try BinaryEncoder().encode(forged))
    let came = Heard<String>()
    let receiving = try files.watch.receive { came.add($0.kind) }
    guard case .deadLettered = try sent.waitForEnd() else {
      Issue.record("\(String(describing: sent.status))")
      return
    }
    receiving.stop()
    #expect(came.all == [])
  }

  // MARK: Taking

  @Test func takingReplacesOnlyWhenAsked() throws {
    let (files, _) = try one()
    try files.folder.write("mine", to: "there")
    try files.handle { message in
      let file = try #require(message.file)
      let error = try failure { try file.move(to: files.path("there")) }
      #expect(error.code == .conflict)
      #expect(try files.folder.read("there") == "mine")
      for name in ["", ".", "..", "a\0b"] {
        #expect(try failure { try file.move(to: files.path(name)) }.code == .invalidName)
      }
      #expect(try failure { try file.move(to: files.path("no/where")) }.code == .notFound)
      try file.move(to: files.path("there"), replacing: true)
      #expect(try failure { try file.move(to: files.path("again")) }.code == .notFound)
      try message.acknowledge()
      #expect(try failure { try file.move(to: files.path("again")) }.code == .superseded)
      #expect(try failure { try file.withOriginalName { _ in } }.code == .superseded)
    }
    #expect(try Digest(files.path("there")) == Digest(files.path("film")))
    try files.waitUntilNothingIsLeft()
  }

  @Test func takingToAnotherFileSystemReplacesOnlyWhenAsked() throws {
    guard let other = try AnotherFileSystem() else { return }
    let (files, _) = try one()
    let there = other.path + "/there"
    try makeFile(there, size: 3)
    try files.handle { message in
      let file = try #require(message.file)
      #expect(try failure { try file.move(to: there) }.code == .conflict)
      #expect(try other.names() == ["there"])
      #expect(try Digest(there).size == 3)
      try file.move(to: there, replacing: true)
    }
    #expect(try Digest(there) == Digest(files.path("film")))
    #expect(try other.names() == ["there"])
    try files.waitUntilNothingIsLeft()
  }

  /// Copying a large file takes a while.
  @Test func takingToAnotherFileSystemIsToldAndCancelled() throws {
    guard let other = try AnotherFileSystem() else { return }
    let files = try FilePair()
    try files.make("film", size: 20 << 20)
    try files.phone.send(file: files.path("film"))
    let there = other.path + "/there"
    try files.handle { message in
      let file = try #require(message.file)
      var told: [FileProgress] = []
      let error = try failure {
        try file.move(to: there) { progress in
          told.append(progress)
          return .cancel
        }
      }
      #expect(error.code == .cancelled)
      #expect(try other.names() == [])
      #expect(try file.exists)
      try file.move(to: there) { progress in
        told.append(progress)
        return .continue
      }
      #expect(told.count > 2)
      #expect(told.last?.done == 20 << 20 && told.last?.total == 20 << 20)
    }
    #expect(try Digest(there) == Digest(files.path("film")))
    try files.waitUntilNothingIsLeft()
  }

  @Test func whatWasTakenBeforeAFailureIsNotThereAgain() throws {
    let (files, _) = try one()
    try files.handle { message in
      let file = try #require(message.file)
      #expect(try file.exists == (message.attempt == 1))
      guard message.attempt == 1 else { return }
      try file.move(to: files.path("taken"))
      throw Refusal()
    }
    #expect(try Digest(files.path("taken")) == Digest(files.path("film")))
    try files.waitUntilNothingIsLeft()
  }

  /// An earlier attempt has taken the file of a dead letter, which is redelivered nevertheless.
  @Test func aRetriedDeadLetterArrivesWithoutItsTakenFile() throws {
    let files = try FilePair { $0.mailbox.attempts = 1 }
    try files.make("film", size: 1000)
    let sent = try files.phone.send(file: files.path("film"))
    let existed = Heard<Bool>()
    let receiving = try files.watch.receive { message in
      guard let file = message.file else { return }
      existed.add(try file.exists)
      guard try file.exists else { return }
      try file.move(to: files.path("taken"))
      throw Refusal()
    }
    guard case .deadLettered = try sent.waitForEnd() else {
      Issue.record("\(String(describing: sent.status))")
      return
    }
    #expect(try files.phone.retry(id: sent.id))
    #expect(throws: Never.self) { try existed.wait("it is redelivered") { $0 == [true, false] } }
    receiving.stop()
    #expect(try files.names("dead") == [])
  }

  // MARK: Orphans and arriving files

  /// A process that is the member claims messages, so a sweep could miss the message of a file.
  @Test func theFilesOfAJoinedMemberAreNotSwept() throws {
    let (files, _) = try one()
    let folder = try Descriptor.open(path: files.home("files"), [.readOnly, .directory])
    let name = try #require(try files.names("files").first)
    let orphan = name.replacing(",phone", with: ",nobody")
    _ = try folder.open(orphan, [.writeOnly, .create, .exclusive], mode: 0o600)
    for isLooking in [true, false] {
      let findings = files.pair.meeting.container.sweepFiles(isLooking: isLooking)
      #expect(findings.map(\.subject) == [])
    }
    #expect(try Set(files.names("files")) == [name, orphan])
    files.watch.leave()
    #expect(files.pair.meeting.container.sweepFiles(isLooking: false).count == 1)
    #expect(try files.names("files") == [name])
  }

  @Test func orphansGoWhenSomebodyJoins() throws {
    let (files, _) = try one()
    let folder = try Descriptor.open(path: files.home("files"), [.readOnly, .directory])
    let name = try #require(try files.names("files").first)
    let orphan = name.replacing(",phone", with: ",nobody")
    for other in [orphan, "foreign"] {
      _ = try folder.open(other, [.writeOnly, .create, .exclusive], mode: 0o600)
    }
    files.watch.leave()
    let held = orphan.replacing(",nobody", with: ",somebody")
    let writer = try folder.open(held, [.writeOnly, .create, .exclusive], mode: 0o600)
    #expect(try writer.tryLock(.exclusive))
    let again = try files.pair.meeting.container.join(as: "watch")
    #expect(try Set(files.names("files")) == [name, "foreign", held])
    again.leave()
    try writer.unlock()
    for isLooking in [true, false] {
      let findings = files.pair.meeting.container.sweepFiles(isLooking: isLooking)
      #expect(findings.map(\.subject) == ["members/watch/files/\(held)"])
    }
    #expect(try Set(files.names("files")) == [name, "foreign"])
  }

  @Test func whoReceivesIsToldHowFarItIs() throws {
    let (heard, senders) = (Heard<FileProgress>(), Heard<String?>())
    let files = try FilePair { options in
      options.mailbox.onFileProgress = { from, progress in
        senders.add(from)
        heard.add(progress)
      }
    }
    try files.make("film", size: 20 << 20)
    try files.phone.send(file: files.path("film"))
    try files.handle { _ in }
    #expect(Set(senders.all) == ["phone"])
    let done = heard.all.map(\.done)
    #expect(done.count > 1 && done == done.sorted())
    #expect(heard.all.last?.done == 20 << 20 && heard.all.last?.fraction == 1)
  }
}
