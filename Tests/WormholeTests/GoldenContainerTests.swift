import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// A container that was written when format 1 was new stays readable for ever.
@Suite(.blocking) struct GoldenContainerTests {
  private let folder: TemporaryDirectory
  private let container: SharedContainer

  init() throws {
    folder = try TemporaryDirectory()
    // A copy, because opening raises the epoch, and git checks files out with modes of its own.
    let source = Programs.source + "/Fixtures/format1/container"
    _ = try run("cp", ["-R", source, folder.path + "/c"])
    _ = try run("chmod", ["-R", "go=,u+rwX", folder.path + "/c"])
    var options = Options()
    options.createsIfMissing = false
    container = try SharedContainer(directory: folder.path + "/c", options: options)
  }

  private let sent = Date(timeIntervalSince1970: 1_700_000_000.25)

  @Test func itsChannelsAreKnown() throws {
    #expect(try container.channels() == ["cleared", "damaged", "speed", "tür/1 🚪"])
  }

  @Test func aValueIsReadAndGoesOn() throws {
    let speed = container.channel("speed", of: Double.self)
    let latest = try #require(try speed.latest)
    #expect(latest.value == 88.5)
    #expect(latest.version == 2)
    #expect(latest.metadata.writer == "golden")
    #expect(latest.metadata.writtenAt == sent)
    #expect(!latest.metadata.isRecovered)
    #expect(try speed.put(89, ifVersion: 2) == 3)
  }

  @Test func aValueOfAllTypesIsRead() throws {
    let value: PropertyListValue = [
      "string": "👩‍👩‍👧‍👦\n", "data": .data(Data([0, 255])), "date": .date(sent),
      "least": .integer(.min), "most": .unsigned(.max), "real": 0.1, "true": true,
      "array": [1, "two", [:]],
    ]
    #expect(try container.channel("tür/1 🚪", of: PropertyListValue.self).value == value)
  }

  @Test func aClearedChannelIsClear() throws {
    let cleared = container.channel("cleared", of: Int.self)
    #expect(try cleared.latest?.value == nil)
    #expect(try cleared.metadata?.isCleared == true)
    #expect(try cleared.put(1) == 3)
  }

  @Test func aDamagedValueIsRecovered() throws {
    let damaged = container.channel("damaged", of: Int.self)
    let latest = try #require(try damaged.latest)
    #expect(latest.value == 1)
    #expect(latest.version == 1)
    #expect(latest.metadata.isRecovered)
    try damaged.put(3)
    #expect(try damaged.value == 3)
    #expect(try container.container("damaged").count == 2, "the damaged file, and why")
  }

  @Test func settingsAreRead() throws {
    #expect(try container.defaults("app").integer(forKey: "volume") == 7)
  }
}
