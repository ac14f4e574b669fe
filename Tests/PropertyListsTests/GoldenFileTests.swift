import Foundation
import TestTraits
import Testing

@testable import WormholePropertyLists

/// Files of this writer and of foreign writers, which have to stay readable for ever.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct GoldenFileTests {
  static let value: PropertyListValue = [
    "string": "Two seats, row 7", "unicode": "Grüße, 世界 🎬", "small": 7, "negative": -7,
    "byte": 200, "short": 40000, "word": 3_000_000_000, "long": 9_007_199_254_740_993,
    "smallest": .integer(.min), "real": 12.375, "yes": true, "no": false,
    "date": .date(Date(timeIntervalSinceReferenceDate: 812_345_678)),
    "data": .data(Data(0..<20)), "empty": "", "array": [1, "two", [3.5], [:]],
    "dictionary": ["nested": ["deep": []], "Ärger": "x"],
  ]

  struct Message: Codable, Equatable {
    var id = 7
    var title = "Two seats"
    var sent = Date(timeIntervalSinceReferenceDate: 812_345_678.125)
    var price = 12.5
    var isRead = true
    var tags = ["a", "ü"]
  }

  @Test(arguments: [
    "python.plist", "python.xml", "plutil.plist", "plutil.xml", "foundation.plist",
    "foundation.xml", "libplist.plist", "wormhole.plist",
  ])
  func everyWriterMeansTheSame(_ name: String) throws {
    #expect(try PropertyListValue(reading: Fixtures.bytes("golden/\(name)")) == Self.value)
  }

  @Test func messagesAreWrittenAsEver() throws {
    let golden = try Fixtures.bytes("golden/message.plist")
    #expect(try BinaryEncoder().encode(Message()) == golden)
    #expect(try BinaryDecoder().decode(Message.self, from: golden) == Message())
    #expect(BinaryPropertyList.seal(of: golden) == .checked)
  }

  @Test func checksumsOfAnotherProgramAgree() throws {
    let bytes = try Fixtures.bytes("golden/sealed.plist")
    #expect(BinaryPropertyList.seal(of: bytes) == .checked)
    #expect(try BinaryPropertyList.decode(bytes) == ["hi"])
  }

  @Test func foundationsEncoderMeansTheSame() throws {
    struct Value: Codable, Equatable {
      var largest = UInt64.max
      var fraction = Date(timeIntervalSinceReferenceDate: 812_345_678.125)
      var float = Float(0.5)
      var none: Int?
      var byNumber = [1: "one"]
      enum Payload: Codable, Equatable { case text(String, size: Int) }
      var payload = Payload.text("a", size: 1)
    }
    let golden = try Fixtures.bytes("golden/foundation-encoder.plist")
    #expect(try BinaryDecoder().decode(Value.self, from: golden) == Value())
    let ours = try Foundation.PropertyListDecoder().decode(
      Value.self, from: Data(BinaryEncoder().encode(Value())))
    #expect(ours == Value())
    #expect(try BinaryPropertyList.decode(BinaryEncoder().encode([Int?.none, 3])) == ["$null", 3])
  }

  @Test func foundationCarriesOurValueThroughItsCoders() throws {
    let json = try JSONEncoder().encode(Self.value["array"])
    #expect(try JSONDecoder().decode(PropertyListValue.self, from: json) == Self.value["array"])
    let encoder = Foundation.PropertyListEncoder()
    encoder.outputFormat = .binary
    let bytes = Array(try encoder.encode(Self.value))
    #expect(try BinaryPropertyList.decode(bytes) == Self.value)
    let read = try Foundation.PropertyListDecoder().decode(
      PropertyListValue.self, from: Data(bytes))
    #expect(read == Self.value)
  }
}
