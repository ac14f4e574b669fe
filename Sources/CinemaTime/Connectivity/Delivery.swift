public import FoundationEssentials

/// How something is told the other side.
public enum Delivery: String, CaseIterable, Sendable {
  /// Now, or not at all: it fails at once if the other side does not run, and a reply says that it
  /// has come.
  case failable
  /// Some time, and in order, also if the other side does not run.
  case guaranteed
  /// As soon as may be, and of several only the latest.
  case highPriority
}

/// What the two sides tell each other beside the books.
public struct Payload: Codable, Hashable, Sendable {
  /// The films that there are tickets for, as far as the sender knows.
  public var purchased: [Movie.ID]?
  /// The films whose images the watch asks for.
  public var qrCodes: [Movie.ID]?

  /// Makes one of what is known.
  public init(purchased: [Movie.ID]? = nil, qrCodes: [Movie.ID]? = nil) {
    self.purchased = purchased
    self.qrCodes = qrCodes
  }
}

/// What is told with an image that is sent.
public struct ImageNote: Codable, Hashable, Sendable {
  /// The film that it is for.
  public let qrCodes: Movie.ID

  /// Makes a note for a film's image.
  public init(qrCodes: Movie.ID) { self.qrCodes = qrCodes }
}

/// The answer to what was sent as ``Delivery/failable``.
public struct Reply: Codable, Hashable, Sendable {
  /// Whether it has come.
  public var verified: Bool
  /// Images that were asked for, by film.
  public var images: [Movie.ID: Data]

  /// Makes an answer.
  public init(verified: Bool = true, images: [Movie.ID: Data] = [:]) {
    self.verified = verified
    self.images = images
  }
}
