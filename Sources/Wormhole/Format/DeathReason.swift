internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The reason for a dead letter: `dead/<name>,reason`.
struct DeathReason: Codable, Sendable {
  let reason: String
  let attempts: Int
  let when: Date

  static func read(_ name: MessageName, in home: MemberDirectory) -> DeathReason? {
    guard
      case .sound(let bytes, _)? = try? home.read(
        name.reasonFile, in: .dead, "read dead letter")
    else { return nil }
    let reason = try? BinaryDecoder().decode(DeathReason.self, from: bytes)
    return reason.flatMap { $0.attempts >= 0 ? $0 : nil }
  }

  /// Writes the reason beside the letter, in place of an earlier one.
  func write(beside name: MessageName, in home: MemberDirectory) throws(Errno) {
    guard let bytes = try? BinaryEncoder().encode(self) else { return }
    try home.place(bytes, as: name.reasonFile, in: .dead, replacing: true)
  }
}
