public import FoundationEssentials

/// The kind of delivery to the other side.
public enum Delivery: String, CaseIterable, Sendable {
  /// Immediate, or not at all: the call fails at once if the other side does not run, and a reply
  /// confirms the arrival.
  case failable
  /// Eventual and in order, even if the other side does not run.
  case guaranteed
  /// As soon as possible; only the latest of several is delivered.
  case highPriority
}

/// The content of messages between the two sides, besides the books.
public struct Payload: Codable, Hashable, Sendable {
  /// The films with tickets, as far as the sender knows.
  public var purchased: [Movie.ID]?
  /// The films whose images the watch requests.
  public var qrCodes: [Movie.ID]?

  /// Makes a payload of the known values.
  public init(purchased: [Movie.ID]? = nil, qrCodes: [Movie.ID]? = nil) {
    self.purchased = purchased
    self.qrCodes = qrCodes
  }
}

/// The metadata of an image.
public struct ImageNote: Codable, Hashable, Sendable {
  /// The film of the image.
  public let qrCodes: Movie.ID

  /// Makes a note for a film's image.
  public init(qrCodes: Movie.ID) { self.qrCodes = qrCodes }
}

/// The reply to a payload that was sent with ``Delivery/failable``.
public struct Reply: Codable, Hashable, Sendable {
  /// Whether the payload has arrived.
  public var verified: Bool
  /// The requested images, by film.
  public var images: [Movie.ID: Data]

  /// Makes a reply.
  public init(verified: Bool = true, images: [Movie.ID: Data] = [:]) {
    self.verified = verified
    self.images = images
  }
}
