import FoundationEssentials
import TestTraits
import Testing

@testable import WormholePropertyLists

/// The fields of a file's dictionary, read without `Codable`.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct DocumentFieldsTests {
  private typealias Field = BinaryDocument.Field

  private func open(_ value: PropertyListValue) throws -> BinaryDocument {
    try BinaryDecoder().open(BinaryPropertyList.encode(value))
  }

  /// The usual position is a guess: another version has written other fields in front.
  @Test func aFieldIsFoundFromEveryPlace() throws {
    let document = try open([
      "a": 7, "b": .date(Date(timeIntervalSinceReferenceDate: 1.5)), "c": "x", "d": "ü",
      "e": .unsigned(.max), "f": true, "g": 2.5,
    ])
    let fields = try #require(document.fields)
    #expect(fields.count == 7)
    for place in 0...9 {
      #expect(fields.field("a", near: place) == Field.integer(7))
      #expect(fields.field("b", near: place) == Field.date(1.5))
      #expect(fields.field("c", near: place) == Field.string("x"))
      #expect(fields.field("d", near: place) == Field.string("ü"))
      for other: StaticString in ["e", "f", "g"] {
        #expect(fields.field(other, near: place) == Field.other)
        #expect(fields.has(other, near: place))
      }
      for missing: StaticString in ["", "x", "aa", "ü"] {
        #expect(fields.field(missing, near: place) == nil)
        #expect(!fields.has(missing, near: place))
      }
    }
  }

  @Test func elementsAreThoseOfAnArrayOrASingleValue() throws {
    let document = try open(["list": [.data(Data([1, 2])), "y"], "one": "x", "zero": []])
    let fields = try #require(document.fields)
    let list = try #require(fields.elements(of: "list", near: 2))
    #expect(list.count == 2)
    #expect(document.data(0, of: list) == Data([1, 2]))
    #expect(document.string(0, of: list) == nil)
    #expect(document.string(1, of: list) == "y")
    #expect(document.data(1, of: list) == nil)
    #expect(fields.elements(of: "zero", near: 0)?.count == 0)
    #expect(fields.elements(of: "one", near: 1)?.count == nil, "no array")
    #expect(fields.elements(of: "none", near: 1)?.count == nil)
    let one = try #require(fields.element("one", near: 1))
    #expect(one.count == 1)
    #expect(document.string(0, of: one) == "x")
    #expect(document.data(0, of: one) == nil)
    #expect(fields.element("none", near: 1)?.count == nil)
  }

  /// Many fields are found faster by an index, which the decoder has.
  @Test(arguments: [0, 1, 15, 16, 17, 40])
  func onlyAFewFieldsAreReadThisWay(_ count: Int) throws {
    let pairs = (0..<count).map { ("key \($0)", PropertyListValue.boolean(true)) }
    let document = try open(.dictionary(Dictionary(uniqueKeysWithValues: pairs)))
    #expect(document.isDictionary)
    #expect(document.fields?.count == (count <= 16 ? count : nil))
  }

  @Test func onlyADictionaryHasFields() throws {
    for value in ["text", 7, [], [[:]]] as [PropertyListValue] {
      let document = try open(value)
      #expect(!document.isDictionary)
      #expect(document.fields?.count == nil)
    }
  }
}
