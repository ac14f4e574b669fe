internal import PropertyLists

/// In which epoch messages are stamped, and which runs of the machine belong to it: the value of
/// the slot `epoch` in `system/`.
///
/// Stamps count from the start of the machine, so the epoch has to rise with each start. Whether
/// there was one is not told by the kernel's name for its run alone: several container run-times
/// give each of their containers a name of its own, on one and the same machine.
struct EpochRecord: Codable, Equatable {
  var epoch: Int
  /// The names by which programs know this run of the machine, and those of earlier runs; the last
  /// one to come is the last.
  private(set) var boots: [String] = []
  /// Nanoseconds since the machine started, when the latest of the names came.
  private(set) var clock: Int64 = 0
  /// Whether a name has come and it is open whether the machine was started: nobody stamps
  /// anything then.
  var isUndecided = false

  private enum CodingKeys: String, CodingKey {
    case epoch, boots, clock
    case isUndecided = "undecided"
  }

  /// The greatest epoch: a stamp has five hexadecimal digits for it.
  static let last = 0xfffff
  /// How many names are kept.
  ///
  /// One that was forgotten is a new name.
  static let longestList = 64

  /// The record of a container that has none.
  init(epoch: Int) { self.epoch = epoch }

  static func isUsable(_ epoch: Int) -> Bool { (0...last).contains(epoch) }

  /// Nil where there is none yet.
  init?(_ content: Slot.Content, path: String) throws(WormholeError) {
    func damage(_ reason: String) -> WormholeError {
      WormholeError(
        .damaged, "read the epoch of", path, because: reason,
        hint: "once nobody uses the container, move system/epoch away; "
          + "messages that wait there may then come out of turn")
    }
    switch content {
    case .nothing: return nil
    case .damaged(let reason): throw damage(reason)
    case .tooLarge(let size): throw damage("system/epoch has \(size) bytes")
    case .value(let bytes, _):
      do {
        self = try BinaryDecoder().decode(EpochRecord.self, from: bytes)
      } catch {
        throw damage("\(error)")
      }
      guard Self.isUsable(epoch), clock >= 0, boots.count <= Self.longestList else {
        throw damage("a number in system/epoch is out of range")
      }
    }
  }

  /// Whether a process that knows the run of the machine by this name may go by the epoch.
  ///
  /// - Parameter now: its nanoseconds since the machine started. Where they are behind those that
  ///   were noted, another run has the same name.
  func covers(_ boot: String, now: Int64) -> Bool {
    !isUndecided && now >= clock && boots.contains(boot)
  }

  mutating func note(_ boot: String, now: Int64) {
    boots.removeAll { $0 == boot }
    boots.append(boot)
    boots.removeFirst(max(0, boots.count - Self.longestList))
    clock = max(0, now)
  }

  func encoded() throws -> [UInt8] { try BinaryEncoder().encode(self) }
}
