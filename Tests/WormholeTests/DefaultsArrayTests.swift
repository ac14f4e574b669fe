import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholePropertyLists

/// Arrays in settings, read as texts.
@Suite(.blocking) struct DefaultsArrayTests {
  /// An array of which some elements are no texts is no array of texts, not even in part.
  @Test func anArrayIsReadAsTextsWholeOrNotAtAll() throws {
    let meeting = try Meeting()
    let defaults = meeting.container.defaults("app")
    try defaults.update { $0 = ["mixed": ["a", 1], "numbers": [1, 2], "none": [], "all": ["b"]] }
    #expect(try defaults.stringArray(forKey: "mixed") == nil)
    #expect(try defaults.stringArray(forKey: "numbers") == nil)
    #expect(try defaults.stringArray(forKey: "none") == [])
    #expect(try defaults.stringArray(forKey: "all") == ["b"])
    #expect(try defaults.array(forKey: "mixed") == ["a", 1])
  }
}
