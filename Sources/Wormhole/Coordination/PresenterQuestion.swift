/// The request from an access to a presenter, sent before the access arrives.
struct PresenterQuestion: Codable, Sendable {
  static let kind = "coordination.ask"

  /// The number of the presenter within its process.
  let presenter: Int
  /// The access: until the notice of its end, the presenter pauses.
  let access: String
  /// The name of the access's process, to check whether the process lives.
  let process: String
  // Fields that do not apply are left out: most do not apply, and every access writes and reads a
  // request.
  let writes: Bool?
  let saves: Bool?
  /// Whether the presented item, or a folder above it, is removed.
  let deletes: Bool?
  /// The paths removed in the presented folder: absolute, and without links on the way to them.
  let deleted: [String]?
}

/// The request that an access sends to a presenter when an item was moved inside the access; the
/// access waits for the reply.
struct PresenterMove: Codable, Sendable {
  static let kind = "coordination.move"

  /// The number of the presenter within its process.
  let presenter: Int
  /// Absolute paths, without links on the way to them.
  let from: String
  let to: String
  /// Whether the presenter's program is notified: not of its own moves.
  let tells: Bool
  /// The names of the accesses in which the item was moved.
  let inside: [String]
}

/// The notice from an access to a presenter, sent when the access has ended.
struct PresenterNews: Codable, Sendable {
  static let kind = "coordination.tell"

  let presenter: Int
  let access: String
  /// The paths that the access may have changed: absolute, and without links on the way to them.
  let changed: [String]
  /// The changed paths that did not exist before.
  let made: [String]
}
