import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists

@testable import Wormhole

/// Small rules of the format: counts, names and kinds.
@Suite(.blocking) struct HandedOnTests {
  @Test func theLastChangeOfEachMachineIsHandedOn() {
    var count = VersionCount(3)
    #expect(count.note == 4 && count.operations == nil)
    count.handOn("1", of: "a")
    count.handOn("2", of: "b")
    count.handOn("3", of: "a")
    #expect(count.operations == ["a": "3", "b": "2"])
    // The next change must read the operations, and takes no shortcut.
    #expect(count.note == nil)
    #expect(count.present == 3 && count.next == 4)
  }

  @Test func aClearedChannelsFileHasTheFieldsAndNoValue() throws {
    var header = Envelope.Header()
    header.version = 7
    header.from = "till"
    header.operations = ["a": "1"]
    let bytes = try Envelope.seal(header, BinaryEncoder())
    let file = try Envelope.OpenFile(bytes, BinaryDecoder())
    #expect(!file.hasValue && !file.isExpired)
    #expect(file.header.version == 7 && file.header.from == "till")
    #expect(file.header.operations == ["a": "1"])
  }

  @Test func anIdentifierIsEscapedUpToItsLimit() throws {
    let longest = String(repeating: "x", count: MessageName.longestIdentifier)
    #expect(try MessageName.escape(id: longest) == longest)
    let error = try failure { _ = try MessageName.escape(id: longest + "x") }
    #expect(error.code == .invalidName && error.subject == longest + "x")
    #expect(error.reason.contains("\(MessageName.longestIdentifier + 1) bytes"))
    // The escaped form counts.
    let escaped = try failure { _ = try MessageName.escape(id: String(longest.dropLast()) + "/") }
    #expect(escaped.reason.contains("\(MessageName.longestIdentifier + 2) bytes"))
    let empty = try failure { _ = try MessageName.escape(id: "") }
    #expect(empty.code == .invalidName && empty.reason == "the identifier is empty")
  }

  @Test func theKindIsTheGivenOneOrTheTypesName() throws {
    #expect(try MessageKind.checked(nil, of: Order.self, "send", "till") == "Order")
    #expect(try MessageKind.checked("k", of: Order.self, "send", "till") == "k")
    let longest = String(repeating: "k", count: 255)
    #expect(try MessageKind.checked(longest, of: Order.self, "send", "till") == longest)
    for kind in [longest + "k", "a\0b"] {
      let error = try failure {
        _ = try MessageKind.checked(kind, of: Order.self, "send", "till")
      }
      #expect(error.code == .invalidName)
      #expect(error.operation == "send" && error.subject == "till")
    }
  }
}
