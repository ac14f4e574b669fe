import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// A process may have fewer descriptors than a program has channels.
@Suite(.blocking) struct OpenSlotsTests {
  /// It cannot be closed with the oldest, and would never be thought of again.
  @Test func whatWasInUseWhenItsTurnCameIsClosedLater() throws {
    let (folder, container) = try Container.forTest()
    let busy = try container.slot(.channels, "busy")
    try busy.add()
    var others: [Slot] = []
    func openMore() throws {
      for _ in 0..<100 {
        others.append(try container.slot(.channels, "\(others.count)"))
        try others[others.count - 1].change("look") { _ in .none }
      }
    }
    _ = try busy.hold("hold", isOutermost: true) { _ in try openMore() }
    #expect(try descriptors(in: container.path("channels", "busy")) > 0)
    try openMore()
    #expect(try descriptors(in: container.path("channels", "busy")) == 0)
    #expect(try busy.add() == 2)
    withExtendedLifetime((folder, others)) {}
  }

  /// A program that uses a name once, and another name next, does not grow.
  @Test func ofReleasedSlotsNoEntriesAreKept() throws {
    let (folder, container) = try Container.forTest()
    let slots = try ["first", "second"].map { try container.slot(.channels, $0) }
    var cache = SlotCache()
    for slot in slots { _ = cache.slot(.channels, slot.name) { slot } }
    for number in 0..<2000 {
      let name = "\(number)"
      _ = cache.slot(.channels, name) {
        Slot(container: container, folder: .channels, name: name, name)
      }
    }
    let known = try #require(Mirror(reflecting: cache).descendant("known", "some"))
    #expect(Mirror(reflecting: known).children.count < 300)
    for slot in slots {
      let isSame = cache.slot(.channels, slot.name) { slots[0] } === slot
      #expect(isSame, "\(slot.name)")
    }
    withExtendedLifetime(folder) {}
  }

  private func descriptors(in path: String) throws -> Int {
    try Processes.openFiles(below: path).count
  }
}
