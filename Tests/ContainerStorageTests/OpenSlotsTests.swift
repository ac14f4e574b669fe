import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

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

  private func descriptors(in path: String) throws -> Int {
    try Processes.openFiles(below: path).count
  }
}
