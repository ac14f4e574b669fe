import TestSupport
import WormholeContainerStorage
import WormholeSyscalls

extension Container {
  /// A container of a test's own, and the directory it is in.
  static func forTest() throws -> (folder: TemporaryDirectory, container: Container) {
    let folder = try TemporaryDirectory()
    return (folder, try Container.open(folder.path + "/c", options: .testing()))
  }

  /// The same, with a slot that holds the number, if not 0, and keeps the number before it.
  static func forTest(
    _ place: Folder = .channels, _ name: String = "n", holding number: Int = 0
  ) throws -> (folder: TemporaryDirectory, container: Container, slot: Slot) {
    let (folder, container) = try forTest()
    let slot = try container.slot(place, name)
    for _ in 0..<number { try slot.add(durability: .power) }
    return (folder, container, slot)
  }
}
