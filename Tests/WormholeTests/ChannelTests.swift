import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Putting, reading, updating and clearing.
@Suite(.blocking) struct ChannelTests {
  private let meeting: Meeting
  private var shared: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting() }

  @Test func nothingIsThereBeforeTheFirstPut() throws {
    let speed = shared.channel("speed", of: Double.self)
    #expect(try speed.value == nil)
    #expect(try speed.latest == nil)
    #expect(try speed.metadata == nil)
    #expect(try shared.channels() == [])
  }

  @Test func whatIsPutIsThereWithVersionTimeAndSender() throws {
    let meeting = try Meeting {
      $0.writerName = "pilot"
      $0.environment.sinceEpoch = { 1_700_000_000_250_000_000 }
    }
    let speed = meeting.container.channel("speed", of: Double.self)
    #expect(try speed.put(88) == 1)
    #expect(try speed.put(88.5) == 2)
    #expect(try speed.value == 88.5)
    let latest = try #require(try speed.latest)
    #expect(latest.channel == "speed")
    #expect(latest.version == 2)
    #expect(latest.metadata.writer == "pilot")
    #expect(latest.metadata.writtenAt == Date(timeIntervalSince1970: 1_700_000_000.25))
    #expect(!latest.metadata.isRecovered && !latest.metadata.isCleared)
    #expect(try speed.metadata == latest.metadata)
  }

  @Test func theSenderIsTheProgramAndItsProcess() throws {
    try shared.channel("a").put(1)
    let from = try #require(try shared.channel("a", of: Int.self).metadata).writer
    #expect(from.hasSuffix(" (\(Processes.current))"))
  }

  @Test func twoOpeningsOfOneProcessSeeEachOther() throws {
    let other = try meeting.another()
    try shared.channel("a").put(1)
    #expect(try other.channel("a", of: Int.self).value == 1)
    #expect(try other.channel("a").put(2) == 2)
    #expect(try shared.channel("a", of: Int.self).value == 2)
  }

  @Test func valuesAreAnyCodable() throws {
    let order = Order(film: "Brazil", seats: [.init(row: 3, number: 7)], note: nil)
    try shared.channel("order").put(order)
    #expect(try shared.channel("order", of: Order.self).value == order)
    let shape = try shared.channel("order", of: PropertyListValue.self).value
    #expect(shape == ["film": "Brazil", "seats": [["row": 3, "number": 7]]])
  }

  // MARK: Clearing

  @Test func aClearLeavesNoValueAndTheVersionGoesOn() throws {
    let speed = shared.channel("speed", of: Double.self)
    try speed.put(1)
    #expect(try speed.clear() == 2)
    #expect(try speed.value == nil)
    #expect(try speed.metadata?.isCleared == true)
    #expect(try speed.latest?.version == 2)
    #expect(try speed.put(3) == 3)
  }

  @Test func clearingTwiceIsClearingOnce() throws {
    let speed = shared.channel("speed", of: Double.self)
    try speed.put(1)
    #expect(try speed.clear() == 2)
    #expect(try speed.clear() == 2)
    #expect(try speed.clear(ifVersion: 2) == 2)
    #expect(try failure { try speed.clear(ifVersion: 1) }.code == .conflict)
  }

  @Test func clearingWhatWasNeverWrittenMakesNothing() throws {
    #expect(try shared.channel("x", of: Int.self).clear() == 0)
    #expect(try shared.container("channels").isEmpty)
    #expect(
      try failure { try shared.channel("x", of: Int.self).clear(ifVersion: 4) }.code == .conflict)
  }

  // MARK: Versions

  /// A writer that put the latest value itself does not read the file for the version.
  ///
  /// If another writer put the latest value, the file is read.
  @Test func versionsGoOnFromWhoeverPutLast() throws {
    let (own, others) = (
      shared.channel("n", of: Int.self), try meeting.another().channel("n", of: Int.self)
    )
    var version = 0
    for round in 1...5 {
      for channel in [own, own, others, others, own] {
        version += 1
        #expect(try channel.put(round) == version)
      }
      version += 2
      #expect(try others.clear() == version - 1)
      #expect(try own.put(round, ifVersion: version - 1) == version)
      try others.update { $0 = ($0 ?? 0) + 10 }
      try own.update { $0 = ($0 ?? 0) + 10 }
      version += 2
      #expect(try others.metadata?.version == version)
    }
  }

  @Test func aPutForAnotherVersionIsAConflictThatNamesBoth() throws {
    let speed = shared.channel("speed", of: Double.self)
    #expect(try speed.put(1, ifVersion: 0) == 1)
    #expect(try speed.put(2, ifVersion: 1) == 2)
    let error = try failure { try speed.put(3, ifVersion: 1) }
    #expect(error.code == .conflict)
    #expect(
      error.description
        == "cannot put value into channel 'speed': version 1 was expected, and the channel has "
        + "version 2; read the channel, and try again")
    #expect(try speed.value == 2)
    let fresh = try failure { try shared.channel("new").put(3, ifVersion: 1) }
    #expect(fresh.reason == "version 1 was expected, and no value was ever put")
  }

  /// Each of eight threads adds by compare-and-set, and tries again after a conflict.
  @Test func compareAndSetLosesNothing() throws {
    let sum = shared.channel("sum", of: Int.self)
    let threads = try (0..<8).map { _ in
      try Thread("adder") {
        for _ in 0..<25 {
          while true {
            let latest = try? sum.latest
            let new = (latest?.value ?? 0) + 1
            if (try? sum.put(new, ifVersion: latest?.version ?? 0)) != nil { break }
          }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(try sum.value == 200)
    #expect(try sum.metadata?.version == 200)
  }

  // MARK: Names

  @Test func channelsAreListedByPrefix() throws {
    for name in ["b/1", "b/2", "a", "tür 🚪"] { try shared.channel(name).put(true) }
    try shared.channel("b/1", of: Bool.self).clear()
    #expect(try shared.channels() == ["a", "b/1", "b/2", "tür 🚪"])
    #expect(try shared.channels(prefix: "b/") == ["b/1", "b/2"])
    #expect(try shared.channels(prefix: "c") == [])
  }

  @Test(arguments: ["", String(repeating: "x", count: 181), String(repeating: "ü", count: 31)])
  func badNamesAreRefusedWhenTheyAreUsed(_ name: String) throws {
    let channel = shared.channel(name, of: Int.self)
    #expect(try failure { try channel.put(1) }.code == .invalidName)
    #expect(try failure { _ = try channel.value }.code == .invalidName)
    #expect(try failure { try channel.clear() }.code == .invalidName)
    #expect(try failure { try channel.update { $0 = 1 } }.code == .invalidName)
    #expect(try shared.channels() == [])
  }
}

extension SharedContainer {
  /// The names in one of the container's folders.
  func container(_ folder: String) throws -> [String] {
    try Descriptor.open(path: directory + "/" + folder, [.readOnly, .directory]).names()
  }
}
