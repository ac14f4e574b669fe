/// What an access asks a presenter before it arrives.
struct PresenterQuestion: Codable, Sendable {
  static let kind = "coordination.ask"

  /// Which of its process's it is for.
  let presenter: Int
  /// The presenter holds off until it is told that this one is over.
  let access: String
  /// As which process the access's shows that it lives.
  let process: String
  // What does not apply is left out: most of it does not, and every access writes and reads this.
  let writes: Bool?
  let saves: Bool?
  /// Whether it is removed, or a folder that it lies in.
  let deletes: Bool?
  /// What is removed in it: absolute paths, without links on the way to them.
  let deleted: [String]?
}

/// What an access tells a presenter, and waits for, when something was moved inside of it.
struct PresenterMove: Codable, Sendable {
  static let kind = "coordination.move"

  /// Which of its process's it is for.
  let presenter: Int
  /// Absolute paths, without links on the way to them.
  let from: String
  let to: String
  /// Whether its program hears of it: not of what it has moved itself.
  let tells: Bool
  /// The names of the accesses that it was moved in.
  let inside: [String]
}

/// What an access tells a presenter when it has ended.
struct PresenterNews: Codable, Sendable {
  static let kind = "coordination.tell"

  let presenter: Int
  let access: String
  /// What it may have changed: absolute paths, without links on the way to them.
  let changed: [String]
  /// Which of them were not there before.
  let made: [String]
}
