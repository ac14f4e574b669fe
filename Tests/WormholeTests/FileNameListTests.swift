import TestSupport
import TestTraits
import Testing

@testable import Wormhole

@Suite(.blocking) struct FileNameListTests {
  private func list(_ names: [String]) -> FileNameList {
    var list = FileNameList()
    for name in names { name.withCString { list.add($0) } }
    list.sort()
    return list
  }

  private func names(_ list: FileNameList) -> [String] {
    var names: [String] = []
    list.forEach {
      names.append(String(cString: $0))
      return true
    }
    return names
  }

  @Test func namesAreSortedByBytesAndListedOnce() {
    let some = ["b", "ü", "a", "ab", "b", "", "a", "~"]
    #expect(names(list(some)) == ["", "a", "ab", "b", "~", "ü"])
    #expect(list(some).count == 6)
    #expect(names(list([])) == [] && list([]).isEmpty)
  }

  /// The names differ early, late, and at their ends.
  @Test(arguments: ["", "1,0000100001", "ü"])
  func namesWithACommonStartAreSortedByBytes(_ start: String) {
    let ends = [
      "", "0", "00", "0000000", "00000000", "000000000", "000000001", "00000001", "0000000~",
      "0000000ü", "1", "~", "ä", "ü", "üü", "0123456789abcdef", "0123456789abcdee",
    ]
    let all: [String] = (ends + ends).map { start + $0 }
    let expected = Set(all).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    let sorted = list(all)
    #expect(names(sorted) == expected)
    #expect(names(list(Array(all.reversed()))) == expected)
    #expect(expected.allSatisfy { sorted.contains($0) })
  }

  @Test func namesAreFound() {
    let some = list(["1,0", "1,00", "0,5", "ü"])
    for name in ["1,0", "1,00", "0,5", "ü"] { #expect(some.contains(name)) }
    for name in ["", "1", "1,000", "0,4", "z"] { #expect(!some.contains(name)) }
    #expect(!list([]).contains("1"))
  }

  @Test func aBodyEndsTheListing() {
    var seen = 0
    let isWhole = list(["a", "b", "c"]).forEach { _ in
      seen += 1
      return seen < 2
    }
    #expect(!isWhole && seen == 2)
  }
}
