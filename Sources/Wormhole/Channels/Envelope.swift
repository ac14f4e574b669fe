internal import FoundationEssentials
internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// The form of a value on disk: a dictionary of `version`, `sent`, `from` and `value`; without
/// `value` it says that the channel was cleared.
///
/// A value is encoded straight into it, once a put, and read from it only by those who ask for it.
enum Envelope {
  enum Key: String, CodingKey { case version, sent, from, value }

  /// All but the value.
  struct Header: Decodable, Equatable {
    var version: Int
    var sent: Date
    var from: String
    var hasValue: Bool

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      version = try container.decode(Int.self, forKey: .version)
      sent = try container.decode(Date.self, forKey: .sent)
      from = try container.decode(String.self, forKey: .from)
      hasValue = container.contains(.value)
      // One is added to it, so what a foreign writer made up has to leave room for that.
      guard version > 0, version < .max else {
        throw DecodingError.dataCorruptedError(
          forKey: .version, in: container, debugDescription: "\(version) is no version")
      }
    }

    /// As everybody writes it; nil for what is not, good or bad.
    init?(usual document: BinaryDocument) {
      guard let fields = document.fields,
        case .integer(let version) = fields.field("version", near: 0), version > 0,
        version < .max, case .date(let sent) = fields.field("sent", near: 1),
        case .string(let from) = fields.field("from", near: 2)
      else { return nil }
      self.version = Int(version)
      self.sent = Date(timeIntervalSinceReferenceDate: sent)
      self.from = from
      hasValue = fields.has("value", near: 3)
    }
  }

  /// A file that has been opened, with its header.
  struct Opened: Sendable {
    let document: BinaryDocument
    let header: Header

    /// - Parameter bytes: as they were read, which checks the seal.
    init(_ bytes: [UInt8], _ decoder: BinaryDecoder) throws {
      document = try decoder.open(bytes, isSealChecked: true)
      header =
        if let header = Header(usual: document) { header } else {
          // What is missing or of another type, it says better.
          try decoder.decode(Header.self, from: document)
        }
    }
  }

  /// The file of a value that is about to be written.
  static func seal<Value: Encodable>(
    _ value: Value, version: Int, sent: Date, from: String, _ encoder: BinaryEncoder
  ) throws -> [UInt8] {
    try encoder.encode(value, forKey: "value") { add(version, sent, from, to: $0) }
  }

  /// The file that says that the value was cleared.
  static func seal(
    version: Int, sent: Date, from: String, _ encoder: BinaryEncoder
  ) throws -> [UInt8] {
    try encoder.encode { add(version, sent, from, to: $0) }
  }

  private static func add(_ version: Int, _ sent: Date, _ from: String, to leaves: BinaryLeaves) {
    leaves.add("version", version)
    leaves.add("sent", sent)
    leaves.add("from", from)
  }
}

/// Which version is there, and which comes next.
///
/// Versions rise by one. Where the latest is not known, because it is damaged or was taken away,
/// the next is the number of microseconds since 1970: greater than any that was ever given out, as
/// nobody writes a million times a second, so that no version comes twice. Where an earlier one is
/// known that was kept, it is also greater by a million than that, whatever the clock says: no
/// version after the kept one was written more than a second later.
struct VersionCount: Equatable {
  /// 0 if nothing was ever written; nil if nobody knows.
  let present: Int?
  let next: Int

  init(_ content: Slot.Content, limits: PropertyListLimits, sinceEpoch: Int64) {
    let fresh = Self.fresh(sinceEpoch)
    switch content {
    case .nothing:
      self.init(present: 0, next: 1)
    case .damaged, .tooLarge:
      self.init(present: nil, next: fresh)
    case .value(let bytes, let isRecovered):
      let opened = try? Envelope.Opened(bytes, BinaryDecoder(limits: limits))
      guard let version = opened?.header.version else {
        self.init(present: nil, next: fresh)
        return
      }
      let step = isRecovered ? Self.recoveryStep : 1
      guard version <= Self.last - step else {
        self.init(present: version, next: fresh)
        return
      }
      self.init(present: version, next: isRecovered ? max(version + step, fresh) : version + 1)
    }
  }

  /// That of what was never written, in a container where what has been removed had versions up to
  /// that one; nil if nobody knows.
  init(removed: Int?, sinceEpoch: Int64) {
    self.init(present: 0, next: removed.map { $0 + 1 } ?? Self.fresh(sinceEpoch))
  }

  /// That of a value whose version is known, and not the last.
  init(_ version: Int) { self.init(present: version, next: version + 1) }

  private static func fresh(_ sinceEpoch: Int64) -> Int {
    Int(clamping: max(1, sinceEpoch / 1000))
  }

  /// The greatest version: whoever finds a greater number finds no value of ours.
  ///
  /// Only somebody who made it up comes so far, and the next version is found as if it were not
  /// known.
  static let last = Int.max - 1
  private static let recoveryStep = 1_000_000

  private init(present: Int?, next: Int) {
    self.present = present
    self.next = next
  }
}
