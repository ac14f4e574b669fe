import TestSupport
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A short digest of a file, for comparing large files.
///
/// Computed without the library's code for checking files, or both could be wrong in the same way.
/// Holes count as zeros, as in reads.
struct Digest: Hashable, Sendable {
  private static let step = 64 << 10

  let size: Int
  private let hash: Int

  init(_ path: String) throws {
    let file = try Descriptor.open(path: path, [.readOnly])
    size = try file.status().size
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.step, alignment: 16)
    defer { buffer.deallocate() }
    var all = Hasher()
    var offset = 0
    while offset < size, let data = try file.nextData(from: offset) {
      offset = data / Self.step * Self.step
      let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(Self.step, size - offset)])
      guard try file.readFully(into: part, at: offset) == part.count else { throw Errno.stale }
      let own = Self.hash(UnsafeRawBufferPointer(part))
      part.initializeMemory(as: UInt8.self, repeating: 0)
      if own != Self.hash(UnsafeRawBufferPointer(part)) {
        all.combine(offset)
        all.combine(own)
      }
      offset += part.count
    }
    hash = all.finalize()
  }

  private static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
    var hasher = Hasher()
    hasher.combine(bytes: bytes)
    return hasher.finalize()
  }
}

/// A pair with files to send.
struct FilePair {
  let pair: Pair
  /// The folder of the files to send and of the taken files.
  let folder: TemporaryDirectory

  init(_ adjust: (inout Options) -> Void = { _ in }) throws {
    pair = try Pair {
      $0.mailbox.retryDelay = .milliseconds(1)
      adjust(&$0)
    }
    folder = try TemporaryDirectory()
  }

  var phone: Peer { pair.phone }
  var watch: Member { pair.watch }

  func path(_ name: String) -> String { folder.path + "/" + name }

  /// The receiver's directory, or a folder inside it.
  func home(_ part: String = "") -> String { pair.meeting.path + "/members/watch/" + part }

  /// Without `room`, the file that records how much space is taken.
  func names(_ part: String) throws -> [String] {
    try Descriptor.open(path: home(part), [.readOnly, .directory]).names().sorted()
      .filter { $0 != "room" }
  }

  /// Waits until nothing is left of any message, nor of a file.
  func waitUntilNothingIsLeft(besides dead: Int = 0) throws {
    try eventually("nothing is left") {
      try ["inbox", "claimed", "files"].allSatisfy { try names($0).isEmpty }
        && names("dead").count == dead && staged().isEmpty
    }
  }

  func staged() throws -> [String] {
    try Descriptor.open(path: pair.meeting.path + "/staging", [.readOnly, .directory]).names()
  }

  /// Makes a file of `size` bytes, different for each seed.
  func make(_ name: String, size: Int, seed: UInt64 = 1) throws {
    try makeFile(path(name), size: size, seed: seed)
  }

  /// Passes each arriving message to a closure, on the test's thread, until a message was handled.
  func handle(_ handler: (Message) throws -> Void) throws {
    let relay = Relay<Message>()
    let receiving = try watch.receive { try relay.pass($0) }
    try relay.handle("a message") { message in
      try handler(message)
      try message.acknowledge()
    }
    receiving.stop()
  }
}

func makeFile(_ path: String, size: Int, seed: UInt64 = 1) throws {
  var random = SeededRandom(seed: seed)
  let part = random.bytes(min(size, 1 << 20))
  let file = try Descriptor.open(path: path, [.writeOnly, .create, .truncate], mode: 0o600)
  var left = size
  while left > 0 {
    try file.write(left >= part.count ? part : Array(part[..<left]))
    left -= part.count
  }
}

extension Sent {
  /// Waits for the outcome on this thread.
  func waitForEnd() throws -> Outcome.Status {
    try eventually("the sender is told") { status }
  }
}

extension Message {
  /// The digest of the message's file at its current path.
  func digest() throws -> Digest { try Digest(#require(file).path) }
}
