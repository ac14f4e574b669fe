import TestTraits
import Testing

@testable import AppGroups

/// The times at which changes of an object's settings are reported.
@Suite(.blocking) struct OwnChangesTests {
  private let changes = OwnChanges()

  @Test func onesOwnIsToldBeforeItsCallReturnsAlsoIfTheWatchWasFaster() {
    changes.begin()
    #expect(!changes.isNews(1))
    #expect(changes.end(with: 1))
    #expect(!changes.isNews(1))
  }

  @Test func whatOthersChangeMeanwhileIsToldByTheLast() {
    changes.begin()
    changes.begin()
    #expect(!changes.isNews(3))
    #expect(changes.end(with: 1))
    #expect(changes.end(with: nil))
    changes.begin()
    #expect(!changes.end(with: nil))
  }

  @Test func whatCameBeforeOnesOwnIsToldWithIt() {
    changes.begin()
    #expect(!changes.isNews(1))
    #expect(changes.end(with: 2))
    #expect(!changes.isNews(2))
    #expect(changes.isNews(3))
  }

  @Test func eachCallTellsOfItsOwn() {
    changes.begin()
    changes.begin()
    #expect(changes.end(with: 2))
    #expect(changes.end(with: 1))
  }
}
