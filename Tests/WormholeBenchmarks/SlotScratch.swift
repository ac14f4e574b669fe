import Foundation
import WormholeCFloor
import WormholeContainerStorage
import WormholePropertyLists

/// A directory with a container of the library and a slot of the baseline; removed with its last
/// user.
///
/// To create a file, ext4 without a journal searches a group of inodes from its start, and skips
/// each inode whose file was deleted within the last minute. Directories with the same parent share
/// a group. In the temporary directory itself, the deletions of other programs would slow down
/// every workload.
final class Scratch {
  let path: String
  /// The directory to remove, the parent of the path; nil if another process removes it.
  private let parent: String?

  init() throws {
    let id = UUID().uuidString
    let parent = NSTemporaryDirectory() + "/wormhole-bench-" + id
    // Ext4 derives the group from the name. The name is short for the sockets in the directory.
    path = "\(parent)/\(id.prefix(8))"
    self.parent = parent
    try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
    _ = floor_spread(parent)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  /// Shares the directory of another process, which removes the directory.
  init(sharing path: String) {
    self.path = path
    parent = nil
  }

  deinit {
    if let parent { try? FileManager.default.removeItem(atPath: parent) }
  }

  func slot() throws -> Slot {
    try Container.open(path + "/container").slot(.channels, "number")
  }

  func floor(_ size: Size) throws -> Floor {
    try Floor(path + "/floor", size: try Counted(number: 0, size).encoded().count)
  }
}

/// The value that the updates change: a number, alone or with a long text beside it.
struct Counted: Codable {
  var number: Int
  var text: String?

  init(number: Int, _ size: Size) {
    self.number = number
    text = size == .small ? nil : String(repeating: "wormhole", count: 2048)
  }

  func encoded() throws -> [UInt8] { try BinaryEncoder().encode(self) }
}

extension Slot {
  /// Adds one under the lock: the measured operation.
  func addOne(_ size: Size, durability: Durability = .process) throws {
    try change("update", durability: durability) { content in
      guard case .value(let bytes, _) = content else {
        return .put(try Counted(number: 1, size).encoded())
      }
      var counted = try BinaryDecoder().decode(Counted.self, from: bytes)
      counted.number += 1
      return .put(try counted.encoded())
    }
  }

  /// Returns the current number.
  func number() throws -> Int {
    guard case .value(let bytes, _) = try self.read() else { return 0 }
    return try BinaryDecoder().decode(Counted.self, from: bytes).number
  }
}

/// The baseline's counterpart of a slot.
final class Floor {
  private var slot = floor_slot()

  init(_ path: String, size: Int) throws { try Self.check(floor_open(&slot, path, size)) }

  deinit { floor_close(&slot) }

  func lock() throws { try Self.check(floor_lock(&slot)) }
  func update() throws { try Self.check(floor_update(&slot)) }
  func replace() throws { try Self.check(floor_replace(&slot)) }
  func access() throws { try Self.check(floor_access(&slot)) }
  func number() -> Int { Int(floor_number(&slot)) }

  private static func check(_ result: CInt) throws {
    if result == -1 { throw BenchmarkError.floor(String(cString: strerror(errno))) }
  }
}
