import Foundation
import TestTraits
import Testing
import WormholeDropIns
import WormholePropertyLists

/// The values of Foundation's callers, converted to property lists and back.
@Suite struct PropertyListBridgeTests {
  @Test(.blocking) func whatDevicesHandOutCanBeHadAsEveryTypeThatFits() throws {
    let taken = try PropertyListValue.dictionary(any: [
      "int": 3, "truth": true, "real": 2.5, "text": "a", "data": Data([1]),
      "date": Date.distantPast,
      "numbers": [1, 2], "named": ["a": 1], "large": UInt64.max,
    ])
    let out = PropertyListValue.dictionary(taken).foundationDictionary!
    #expect(out["int"] as? Int == 3)
    #expect(out["int"] as? Int64 == 3)
    #expect(out["int"] as? UInt8 == 3)
    #expect(out["int"] as? Double == 3)
    #expect(out["int"] as? NSNumber == 3)
    #expect(out["int"] as? Bool == nil)
    #expect(out["truth"] as? Bool == true)
    #expect(out["truth"] as? Int == 1)
    #expect(out["real"] as? Double == 2.5)
    #expect(out["real"] as? CGFloat == 2.5)
    #expect(out["text"] as? CGFloat == nil)
    #expect(out["real"] as? Int == nil)
    #expect(out["text"] as? String == "a")
    #expect(out["text"] as? NSString == "a")
    #expect(out["data"] as? Data == Data([1]))
    #expect(out["date"] as? Date == .distantPast)
    #expect(out["numbers"] as? [Int] == [1, 2])
    #expect(out["numbers"] as? [Double] == [1, 2])
    #expect(out["named"] as? [String: Int] == ["a": 1])
    #expect(out["large"] as? UInt64 == .max)
  }

  @Test(.blocking) func typesAreKept() throws {
    let values: [(Any, PropertyListValue)] = [
      (true, .boolean(true)), (NSNumber(value: true), .boolean(true)), (1, .integer(1)),
      (NSNumber(value: 1), .integer(1)), (Int8(1), .integer(1)), (1.0, .real(1)),
      (Float(0.5), .real(0.5)), (UInt64.max, .unsigned(.max)), (NSString("a"), .string("a")),
      (NSDate(timeIntervalSinceReferenceDate: 1), .date(Date(timeIntervalSinceReferenceDate: 1))),
      (NSData(data: Data([1])), .data(Data([1]))), (NSArray(array: [1]), [1]),
      (NSDictionary(dictionary: ["a": 1]), ["a": 1]), (Int?.some(1) as Any, .integer(1)),
      (Int64.min, .integer(.min)), (CGFloat(2.5), .real(2.5)), ([CGFloat(2.5)], [2.5]),
    ]
    for (any, value) in values { #expect(try PropertyListValue(any: any) == value) }
  }

  /// Numbers of eight bits have the same code of C's types as booleans.
  @Test(.blocking) func aNumberOfEightBitsIsNoBoolean() throws {
    for number in Int8.min ... .max {
      let stored = PropertyListValue.integer(Int64(number))
      #expect(try PropertyListValue(any: number) == stored)
      #expect(try PropertyListValue(any: NSNumber(value: number)) == stored)
    }
    for isTrue in [false, true] {
      #expect(try PropertyListValue(any: isTrue) == .boolean(isTrue))
      #expect(try PropertyListValue(any: NSNumber(value: isTrue)) == .boolean(isTrue))
    }
  }

  @Test(.blocking) func whatNoPropertyListHoldsIsRefusedWithItsPlace() {
    func refused(_ any: Any) -> String? {
      do {
        _ = try PropertyListValue(any: any)
        return nil
      } catch { return error.description }
    }
    #expect(
      refused(["a": [1, NSNull()]])
        == "'a[1]' has the type NSNull, which no property list can contain")
    #expect(refused(URL(fileURLWithPath: "/")) != nil)
    #expect(refused(["a": Int?.none as Any]) != nil)
    #expect(refused([1: 2]) != nil)
    #expect(
      refused(Refused()) == "the value has the type Refused, which no property list can contain")
  }

  /// Beyond the limit, a conversion would need ever more of the thread's stack.
  @Test(.blocking, arguments: [false, true])
  func whatIsNestedTooDeepIsRefused(_ isArray: Bool) throws {
    func nested(_ depth: Int) -> Any {
      var any: Any = 1
      for _ in 0..<depth { any = isArray ? [any] : ["a": any] }
      return any
    }
    #expect(throws: Never.self) { try PropertyListValue(any: nested(128)) }
    let error = #expect(throws: NotAPropertyList.self) {
      try PropertyListValue(any: nested(129))
    }
    let place = isArray ? String(repeating: "[0]", count: 34) : String(repeating: "a.", count: 50)
    #expect(
      error?.description
        == "'\(place.prefix(100))…' contains more than 128 containers in each other, and no "
        + "property list can")
  }
}

private struct Refused {}
