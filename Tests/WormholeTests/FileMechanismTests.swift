import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// Files of messages, at the places where their mechanisms are needed: each test fails if one
/// mechanism is missing.
@Suite(.blocking) struct FileMechanismTests {
  // MARK: Modes

  /// Otherwise the receiver, another user of the group, could not read the file.
  @Test(arguments: [TransferMode.copying, .moving], [Sharing.owner, .group])
  func aFileHasTheModeOfItsContainer(
    _ mode: TransferMode, _ sharing: Sharing
  ) throws {
    let files = try FilePair { $0.sharing = sharing }
    try files.make("film", size: 1000)
    try files.folder.descriptor.open("film", [.readOnly]).setMode(0o644)
    try files.phone.send(file: files.path("film"), mode: mode)
    let folder = try Descriptor.open(path: files.home("files"), [.readOnly, .directory])
    let status = try folder.status(of: try #require(try files.names("files").first))
    #expect(status.mode & 0o777 == (sharing == .group ? 0o660 : 0o600))
  }

  // MARK: Files of messages that may be lost

  /// The message has arrived, though a power cut could take it back.
  @Test(arguments: [TransferMode.copying, .moving])
  func theFileOfAMessageWithoutASyncedNameArrives(_ mode: TransferMode) throws {
    let files = try FilePair()
    try files.make("film", size: 1000)
    let digest = try Digest(files.path("film"))
    try FaultPoints.with([FaultRule(.fsync, path: "watch/inbox", .fail(.inputOutput))]) {
      let error = try failure { try files.phone.send(file: files.path("film"), mode: mode) }
      #expect(error.code == .notDurable)
    }
    #expect(try files.names("files").count == 1)
    try files.handle { message in
      let received = try message.digest()
      #expect(received == digest)
    }
    // The sender may send the file again.
    #expect(try Digest(files.path("film")) == digest)
  }

  // MARK: Checksums

  /// For a large file, two threads compute the checksum of a half each.
  @Test(arguments: [1 << 20, 16 << 20, (16 << 20) + 12_345])
  func theChecksumIsThatOfTheWholeFile(_ size: Int) throws {
    let files = try FilePair()
    let parts = [(0, 1), (size / 3, 2), (size - 1000, 3)] as [(Int, UInt64)]
    let file = try files.folder.descriptor.open("film", [.readWrite, .create], mode: 0o600)
    try file.truncate(to: size)
    for (offset, seed) in parts {
      var random = SeededRandom(seed: seed)
      try file.writeFully(random.bytes(1000).span.bytes, at: offset)
    }
    for mode in [TransferMode.copying, .moving] {
      let sum = crc32(try file.contents())
      let sent = try files.phone.send(file: files.path("film"), mode: mode)
      let home = try files.pair.meeting.container.storage.member("watch")
      let header = try QueuedMessageReader(home, PropertyListLimits()).header(
        sent.name.text, .inbox)
      #expect(header?.file?.checksum == sum)
      try files.handle { message in
        let file = try #require(message.file)
        #expect(file.size == size)
      }
    }
  }

  /// CRC-32 as in zlib, computed in another way than in the library.
  private func crc32(_ bytes: [UInt8]) -> UInt32 {
    let table = (0..<256).map { index -> UInt32 in
      (0..<8).reduce(UInt32(index)) { sum, _ in sum >> 1 ^ (sum & 1 == 1 ? 0xedb8_8320 : 0) }
    }
    return table.withUnsafeBufferPointer { table in
      bytes.withUnsafeBufferPointer { bytes in
        var sum = UInt32.max
        for index in 0..<bytes.count {
          sum = sum >> 8 ^ table[Int(UInt8(truncatingIfNeeded: sum) ^ bytes[index])]
        }
        return ~sum
      }
    }
  }

  @Test(arguments: [0, 5 << 20, 12 << 20, (16 << 20) - 1])
  func aLargeFileIsComparedToItsEnd(_ offset: Int) throws {
    let files = try FilePair()
    try files.make("film", size: 16 << 20)
    let sent = try files.phone.send(file: files.path("film"))
    try files.change(try #require(try files.names("files").first), at: offset)
    let arrived = Heard<Int>()
    let receiving = try files.watch.receive { arrived.add($0.attempt) }
    guard case .deadLettered(let reason) = try sent.waitForEnd() else {
      Issue.record("\(String(describing: sent.status))")
      return
    }
    #expect(reason.hasSuffix("its checksum is wrong"), "\(reason)")
    receiving.stop()
    #expect(arrived.all == [])
  }

  /// Otherwise the next guard would call the file too large.
  @Test func aNegativeSizeOfAFileIsNamedAsTheReason() throws {
    let files = try FilePair()
    try files.make("film", size: 1000)
    let sent = try files.phone.send(file: files.path("film"))
    let path = files.home("inbox/\(sent.name.text)")
    let list = try BinaryPropertyList.decode(Descriptor.open(path: path, [.readOnly]).contents())
    let negative = try #require(
      ExtremeNumber.variants(of: list).first {
        $0.place.hasSuffix(".size") && $0.number == .integer(-1)
      })
    try Descriptor.open(path: path, [.writeOnly, .truncate]).write(
      BinaryEncoder().encode(negative.list))
    let receiving = try files.watch.receive { _ in }
    guard case .deadLettered(let reason) = try sent.waitForEnd() else {
      Issue.record("\(String(describing: sent.status))")
      return
    }
    receiving.stop()
    #expect(reason.contains("states a negative size of its file"), "\(reason)")
  }

  /// The file was compared when its message was received, and is compared again during the copy.
  @Test func aFileThatHasChangedIsNotCopiedOut() throws {
    guard let other = try AnotherFileSystem() else { return }
    let files = try FilePair()
    try files.make("film", size: 1000)
    try files.phone.send(file: files.path("film"))
    try files.handle { message in
      let file = try #require(message.file)
      try files.change(try #require(try files.names("files").first), at: 500)
      let error = try failure { try file.move(to: other.path + "/taken") }
      #expect(error.code == .damaged, "\(error)")
      #expect(error.reason.hasSuffix("its checksum is wrong"), "\(error)")
      #expect(try other.names() == [])
    }
  }

  // MARK: Sweeping

  /// The message is enqueued after the sweeper has looked for it, and before the sweeper has the
  /// file's lock.
  @Test func aFileWhoseMessageCameMeanwhileIsNotSwept() throws {
    let files = try FilePair()
    let path = files.pair.meeting.path
    files.watch.leave()
    try files.make("film", size: 1000)
    let before = try Digest(files.path("film"))
    let sender = try Running(
      .sendFile(path, files.path("film"), moves: false, durability: .process),
      environment: ["WORMHOLE_FAULTS=rename~watch/inbox/:before:stop"])
    try sender.waitUntilStopped()
    #expect(try files.names("files").count == 1)
    let sweeper = try Running(
      .join(path, "watch"), environment: ["WORMHOLE_FAULTS=flock~watch/files/1,:before:stop"])
    try sweeper.waitUntilStopped()
    #expect(try sender.waitOrGo() == "sent\n")
    _ = try sweeper.waitOrGo()
    #expect(try files.names("inbox").count == 1)
    #expect(try files.names("files").count == 1, "the file stays with its message")
    let again = try files.pair.meeting.another().join(as: "watch")
    let heard = Heard<Digest?>()
    let receiving = try again.receive { heard.add(try? $0.digest()) }
    try heard.wait("it comes with its file") { $0 == [before] }
    receiving.stop()
  }

  // MARK: Syncs

  /// The system calls of a body, a line each: the call, and the end of its path.
  private func calls(_ names: [String], _ body: () throws -> Void) rethrows -> [String] {
    #if FAULT_POINTS
      try FaultPoints.with([], body).compactMap { line in
        names.first { line.contains($0) }.map { "\(line.prefix { $0 != " " }) \($0)" }
      }
    #else
      []
    #endif
  }

  /// A power cut must not leave a message without its file.
  @Test(arguments: [TransferMode.copying, .moving])
  func aFileIsDurableBeforeItsMessageIsThere(_ mode: TransferMode) throws {
    let files = try FilePair()
    // The first send syncs the directories as well.
    for name in ["first", "film"] {
      try files.make(name, size: 1000)
      let calls = try calls(["watch/files", "watch/inbox", "c/staging/"]) {
        try files.phone.send(file: files.path(name), mode: mode)
      }.filter { $0.hasPrefix("fsync") || $0.hasPrefix("rename") }
      let first = try #require(calls.firstIndex(of: "rename watch/files"), "\(calls)")
      let second = try #require(calls.firstIndex(of: "rename watch/inbox"), "\(calls)")
      #expect(calls[..<first].contains("fsync c/staging/"), "the file: \(calls)")
      #expect(calls[first..<second].contains("fsync watch/files"), "its name: \(calls)")
      #expect(calls[second...].contains("fsync watch/inbox"), "the message's: \(calls)")
    }
    let quick = try calls(["watch/files", "watch/inbox", "c/staging/"]) {
      try files.make("quick", size: 1000)
      try files.phone.send(file: files.path("quick"), mode: mode, .quick())
    }
    #expect(!quick.contains { $0.hasPrefix("fsync") }, "\(quick)")
  }

  /// The message is acknowledged afterwards, so a power cut must not take the file away.
  @Test(arguments: [false, true], [false, true])
  func aTakenFileIsDurable(_ isElsewhere: Bool, _ isReplacing: Bool) throws {
    let other = isElsewhere ? try AnotherFileSystem() : nil
    if isElsewhere, other == nil { return }
    let files = try FilePair()
    try files.make("film", size: 1000)
    let folder = other?.path ?? files.path("folder")
    if !isElsewhere { try files.folder.descriptor.makeDirectory("folder", mode: 0o700) }
    if isReplacing { try makeFile(folder + "/taken", size: 3) }
    for durability in [Durability.power, .process] {
      try files.phone.send(file: files.path("film"), .quick { $0.durability = durability })
      try files.handle { message in
        let file = try #require(message.file)
        let path = durability == .power ? folder + "/taken" : folder + "/quick"
        let syncs = try calls([folder]) {
          try file.move(to: path, replacing: isReplacing)
        }.filter { $0 == "fsync \(folder)" }
        // A copied file is synced before it has its name; a moved file was synced when it was sent.
        #expect(syncs.count == (durability == .power ? isElsewhere ? 2 : 1 : 0), "\(syncs)")
      }
    }
  }
}

extension FilePair {
  /// Changes one byte of a message's file.
  fileprivate func change(_ name: String, at offset: Int) throws {
    let file = try Descriptor.open(path: home("files/\(name)"), [.readWrite])
    var byte: [UInt8] = [0]
    _ = try byte.withUnsafeMutableBytes { try file.readFully(into: $0, at: offset) }
    byte[0] ^= 0x10
    try file.writeFully(byte.span.bytes, at: offset)
  }
}
