import SharedContainer
import Syscalls
import TestSupport
import Testing
import Wormhole

/// What a file is in few words, so that large ones can be compared.
struct Digest: Hashable, Sendable {
  let size: Int
  let checksum: UInt32

  init(_ path: String) throws {
    let file = try Descriptor.open(path: path, [.readOnly])
    size = try file.status().size
    checksum = try FileCopy.checksum(of: file, size: size) { _ in true }
  }
}

/// A pair with files to send.
struct FilePair {
  let pair: Pair
  /// Where files are sent from, and taken to.
  let folder: TemporaryDirectory

  init(_ adjust: (inout Wormhole.Options) -> Void = { _ in }) throws {
    pair = try Pair {
      $0.mail.retryDelay = .milliseconds(1)
      adjust(&$0)
    }
    folder = try TemporaryDirectory()
  }

  var phone: Wormhole.Peer { pair.phone }
  var watch: Wormhole.Member { pair.watch }

  func path(_ name: String) -> String { folder.path + "/" + name }

  /// The directory of the receiver, or one in it.
  func home(_ part: String = "") -> String { pair.meeting.path + "/members/watch/" + part }

  /// Not the one that says how much room there is.
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

  /// Makes a file of that many bytes, different for each seed.
  func make(_ name: String, size: Int, seed: UInt64 = 1) throws {
    try makeFile(path(name), size: size, seed: seed)
  }

  /// Gives each message that comes to a closure, until one was handled; answers its outcome.
  func receive(_ handler: @escaping @Sendable (Wormhole.Message) throws -> Void) throws {
    let handled = Heard<Int>()
    let receiving = try watch.receive { message in
      try handler(message)
      try message.acknowledge()
      handled.add(message.attempt)
    }
    try handled.wait("a message") { !$0.isEmpty }
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

extension Wormhole.Sent {
  /// Waits for the end on this thread.
  func waitForEnd() throws -> Wormhole.Outcome.End {
    try eventually("the sender is told") { end }
  }
}

extension Wormhole.Message {
  /// That of its file, where it lies.
  func digest() throws -> Digest { try Digest(#require(file).path) }
}
