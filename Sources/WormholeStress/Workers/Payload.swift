import FoundationEssentials
import PropertyLists

/// What is put and sent: a token that is never given twice, and so much behind it that a value of
/// two halves would be seen.
struct Payload: Codable, Sendable {
  let token: String
  private let filling: Data

  init(_ token: String) {
    self.token = token
    filling = Self.filling(token)
  }

  /// Why it is not what somebody has made; nil if it is.
  var damage: String? {
    filling == Self.filling(token) ? nil : "'\(token)' came with what belongs to something else"
  }

  static let kinds = ["even", "odd"]

  /// As which kind of message it is sent, alone or as the first of several.
  static func kind(_ token: String) -> String {
    kinds[token.utf8.last.map { Int($0) % 2 } ?? 0]
  }

  /// Whether its sender asks how it ends, and gives it the token for an id.
  static func isFollowed(_ token: String) -> Bool {
    token.utf8.last.map { "07".utf8.contains($0) } ?? false
  }

  /// What belongs to a token: as long as that says, up to some kilobytes.
  static func filling(_ token: String) -> Data {
    var dice = Dice(seed: token.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) })
    let count = dice.oneIn(20) ? dice.number(1000..<20_000) : dice.number(0..<200)
    // The same piece again and again: to make and compare it is not what is to take the time.
    let piece = (0..<61).map { _ in UInt8(truncatingIfNeeded: dice.next()) }
    var filling = Data(capacity: count + piece.count)
    while filling.count < count { filling.append(contentsOf: piece) }
    return filling.prefix(count)
  }
}
