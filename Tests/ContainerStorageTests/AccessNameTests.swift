import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// The names of accesses' files, which every process reads and any member of the group may make up.
@Suite(.blocking) struct AccessNameTests {
  @Test(arguments: [
    "0000000000000000,0123456789abcdef,0", "0000000000000001,0000000000000000,1",
    "fedcba9876543210,ffffffffffffffff,10", "ffffffffffffffff,00000000000000ff,1000901",
    "000000000000000c,a000000000000000,9999999999999999",
  ])
  func aNameIsReadAsItWasWritten(_ text: String) throws {
    let parts = text.parts(between: ",")
    let stamp = try #require(UInt64(parts[0], radix: 16))
    let number = try #require(Int(parts[2]))
    let name = AccessName(stamp: stamp, process: parts[1], number: number)
    #expect(name.process == parts[1])
    #expect(name.text == text)
    #expect(AccessName(text) == name)
    let listed = text.withCString { AccessName($0) }
    #expect(listed == name)
    #expect(listed?.stamp == stamp)
    #expect(listed?.number == number)
  }

  /// Each byte of the text counts: names of other forms are ignored.
  @Test(arguments: [
    "", ",,", "0123456789abcdef,0123456789abcdef", "0123456789abcdef,0123456789abcdef,",
    "0123456789abcdef,0123456789abcdef,01", "0123456789abcdef,0123456789abcdef,-1",
    "0123456789abcdef,0123456789abcdef,+1", "0123456789abcdef,0123456789abcdef,1 ",
    "0123456789abcdef,0123456789abcdef,1,", "0123456789abcdef,0123456789abcdef,a",
    "0123456789abcdef,0123456789abcdef,00", "0123456789abcdef,0123456789abcdef,1/",
    "0123456789abcdef,0123456789abcdef,10000000000000000",
    "0123456789ABCDEF,0123456789abcdef,1", "0123456789abcdef,0123456789abcdeF,1",
    "0123456789abcde,00123456789abcdef,1", "0123456789abcdef.0123456789abcdef,1",
    "0123456789abcdef,0123456789abcdef.1", "012345678,abcdef,0123456789abcdef,1",
    "+123456789abcdef,0123456789abcdef,1", "0123456789abcdef,0123456789abcde\u{e9},1",
  ])
  func anotherFormIsNoName(_ text: String) {
    #expect(AccessName(text) == nil)
    let listed = text.withCString { AccessName($0) }
    #expect(listed == nil)
  }
}
