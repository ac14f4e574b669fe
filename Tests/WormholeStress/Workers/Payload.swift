import FoundationEssentials
import WormholePropertyLists

/// The content of values and messages: a unique token, with enough data to reveal a value that
/// consists of two halves.
struct Payload: Codable, Sendable {
  let token: String
  private let filling: Data

  init(_ token: String) {
    self.token = token
    filling = Self.filling(token)
  }

  /// The reason why the data does not belong to the token; nil if it does.
  var damage: String? {
    filling == Self.filling(token) ? nil : "'\(token)' arrived with the data of another token"
  }

  static let kinds = ["even", "odd"]

  /// Returns the kind of a message, from its token or the first token of its batch.
  static func kind(_ token: String) -> String {
    kinds[token.utf8.last.map { Int($0) % 2 } ?? 0]
  }

  /// Returns whether the sender requests the outcome, and uses the token as the message ID.
  static func isFollowed(_ token: String) -> Bool {
    token.utf8.last.map { "07".utf8.contains($0) } ?? false
  }

  /// Returns whether the first attempt to handle a message of the shared queue fails.
  static func fails(_ token: String) -> Bool {
    token.utf8.last.map { "35".utf8.contains($0) } ?? false
  }

  /// Returns the data of a token: its length depends on the token, up to some kilobytes.
  static func filling(_ token: String) -> Data {
    var dice = Dice(seed: token.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) })
    let count = dice.oneIn(20) ? dice.number(1000..<20_000) : dice.number(0..<200)
    // The same piece is repeated: making and comparing the data must not take the time.
    let piece = (0..<61).map { _ in UInt8(truncatingIfNeeded: dice.next()) }
    var filling = Data(capacity: count + piece.count)
    while filling.count < count { filling.append(contentsOf: piece) }
    return filling.prefix(count)
  }
}
