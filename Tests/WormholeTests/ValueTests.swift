import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholePropertyLists

/// Values of every kind come back as they were put.
@Suite(.blocking) struct ValueTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting() }

  private func comesBack<Value: Codable & Equatable & Sendable>(_ value: Value) throws -> Bool {
    let channel = container.channel("value", of: Value.self)
    try channel.put(value)
    return try channel.value == value
  }

  @Test func texts() throws {
    for text in ["", "plain", "two\nlines\r\n\u{0}\t", "👩‍👩‍👧‍👦 e\u{301} Ω", "$null", "bplist00"] {
      #expect(try comesBack(text))
    }
  }

  @Test func bytes() throws {
    #expect(try comesBack(Data()))
    #expect(try comesBack(Data(0...255)))
    #expect(try comesBack([UInt8]()))
  }

  @Test func tenMegabytes() throws {
    var random = SeededRandom(seed: TestRun.seed)
    let data = Data(random.bytes(10 << 20))
    #expect(data.count == 10 << 20)
    #expect(try comesBack(data))
    #expect(try comesBack(String(repeating: "long text\n", count: 1 << 20)))
  }

  @Test func numbers() throws {
    for number in [Int64.min, -1, 0, 255, 256, 65_536, Int64.max] {
      #expect(try comesBack(number))
    }
    for number in [UInt64.min, UInt64(Int64.max) + 1, UInt64.max] { #expect(try comesBack(number)) }
    for number in [0.1, -0.0, .infinity, .leastNonzeroMagnitude, 1e300] {
      #expect(try comesBack(number))
    }
    #expect(try comesBack(true))
    let channel = container.channel("nan", of: Double.self)
    try channel.put(.nan)
    #expect(try channel.value?.isNaN == true)
  }

  @Test func dates() throws {
    for interval in [0, -1e9, 721_692_800.123_456_7] {
      #expect(try comesBack(Date(timeIntervalSinceReferenceDate: interval)))
    }
  }

  @Test func nestedOnes() throws {
    #expect(try comesBack([String: [Int?]]()))
    #expect(try comesBack(["a": [1, nil, 3], "": []]))
    var deep: PropertyListValue = ["end": true]
    for level in 0..<100 { deep = level.isMultiple(of: 2) ? [deep] : ["down": deep] }
    #expect(try comesBack(deep))
    #expect(try comesBack([Order(film: "Ran", seats: [], note: "x"), Order(film: "M", seats: [])]))
  }

  /// An optional with the value nil is a value, and not the lack of a value.
  @Test func nilIsAValueOfAnOptionalType() throws {
    let channel = container.channel("maybe", of: Int?.self)
    try channel.put(nil)
    #expect(try channel.metadata?.isCleared == false)
    #expect(try channel.value == .some(.none))
  }

  // MARK: Refusals

  @Test func whatIsTooLargeIsRefused() throws {
    let small = try meeting.another { $0.maximumValueBytes = 1000 }
    let channel = small.channel("data", of: Data.self)
    try channel.put(Data(count: 800))
    let error = try failure { try channel.put(Data(count: 1001)) }
    #expect(error.code == .tooLarge)
    #expect(try channel.value == Data(count: 800))
    try container.channel("data").put(Data(count: 2000))
    #expect(try failure { _ = try channel.value }.code == .tooLarge)
  }

  @Test func whatEncodesNothingIsAnEmptyDictionary() throws {
    struct Nothing: Codable, Sendable {}
    try container.channel("nothing").put(Nothing())
    #expect(try container.channel("nothing", of: PropertyListValue.self).value == [:])
  }

  @Test func whatCannotBeEncodedIsRefusedAndChangesNothing() throws {
    struct Mine: Error {}
    struct Unwilling: Codable, Sendable {
      func encode(to encoder: any Encoder) throws { throw Mine() }
    }
    try container.channel("a").put(1)
    let error = try failure { try container.channel("a").put(Unwilling()) }
    #expect(error.code == .invalidValue)
    #expect(error.description == "cannot put value into channel 'a': Mine()")
    #expect(try container.channel("a", of: Int.self).value == 1)
  }

  @Test func anotherTypeIsAnErrorWithPathAndReason() throws {
    let order: PropertyListValue = ["film": "Brazil", "seats": [["row": 1, "number": "seven"]]]
    try container.channel("order").put(order)
    let error = try failure { _ = try container.channel("order", of: Order.self).value }
    #expect(error.code == .typeMismatch)
    #expect(
      error.description
        == "cannot read channel 'order': at 'seats[0].number': a string where Int is expected")
    let top = try failure { _ = try container.channel("order", of: Int.self).value }
    #expect(top.reason == "a dictionary where Int is expected")
    let update = try failure { try container.channel("order", of: Int.self).update { $0 = 1 } }
    #expect(update.code == .typeMismatch)
    #expect(update.operation == "update channel")
    // The value is unharmed, and readers of the metadata or of the raw value succeed.
    #expect(try container.channel("order", of: Int.self).metadata?.version == 1)
    #expect(try container.channel("order", of: PropertyListValue.self).value == order)
    #expect(try container.channel("order", of: Int.self).put(5) == 2)
  }
}
