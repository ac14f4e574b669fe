internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The form of a value on disk: a dictionary of `version`, `sent`, `from` and `value`.
///
/// Without `value`, the channel was cleared. After `until`, the value does not count.
/// `operations` has the last change that each other machine has asked for; `home` is in a copy,
/// whose home is another machine.
///
/// A value is encoded directly into the dictionary, once for each put, and decoded only for readers
/// that ask for the value.
enum Envelope {
  /// The key of the value, which is beside the fields of the header.
  static let value = "value"

  /// All fields except the value.
  struct Header: FileRecord, Equatable {
    var version = 0
    var sent = Date.distantPast
    var from = ""
    /// The moment of the wall clock from which on the value does not count; nil for never.
    var until: Date?
    /// The last change that each other machine has asked for, by the machine; nil for none.
    var operations: [String: String]?
    /// The home of a copy; nil for a channel of this machine.
    var home: ChannelHome?

    mutating func visit(_ fields: inout some FieldVisitor) throws {
      try fields.field("version", &version)
      // The next version is larger by 1, so a version that a foreign writer invents must be below
      // the maximum.
      try fields.check("version", version > 0 && version < .max, "\(version) is not a version")
      try fields.field("sent", &sent)
      try fields.field("from", &from)
      // What few values have spoils no value if it has another type.
      try? fields.field("until", &until)
      try? fields.field("operations", &operations)
      var home = home?.list
      try fields.optional("home", &home)
      self.home = home.map { ChannelHome($0) }
    }
  }

  /// An opened file, with its header.
  struct OpenFile: Sendable {
    let document: BinaryDocument
    let header: Header
    /// Whether there is a value, expired or not.
    let hasValue: Bool
    /// Whether the value has expired: readers find no value.
    let isExpired: Bool

    /// - Parameters:
    ///   - bytes: the bytes from the reader, which has checked the seal.
    ///   - clock: the wall clock, in nanoseconds since 1970; nil if the value is not read. Values
    ///     that never expire cost no look at the clock.
    init(_ bytes: [UInt8], _ decoder: BinaryDecoder, _ clock: (() -> Int64)? = nil) throws {
      document = try decoder.open(bytes, isSealChecked: true)
      hasValue =
        document.fields?.has("value", near: 3) ?? decoder.has(Envelope.value, in: document)
      header = try Header(document, decoder, others: hasValue ? 1 : 0)
      isExpired =
        if let until = header.until, let clock, !Mutants.has(.keepExpired) {
          until <= Date(sinceEpoch: clock())
        } else {
          false
        }
    }
  }

  /// Returns the file of a value.
  static func seal<Value: Encodable>(
    _ value: Value, _ header: Header, _ encoder: BinaryEncoder
  ) throws -> [UInt8] {
    try encoder.encode(value, forKey: "value", header.add(to:))
  }

  /// Returns the file of the next version of a dictionary in which one key has another value; nil
  /// if the whole value has to be sealed.
  ///
  /// - Parameter file: the present version, which this process has sealed for the same writer, with
  ///   no field beside those of every value.
  static func reseal(
    _ file: [UInt8], _ key: String, _ value: PropertyListValue, version: Int, sent: Date,
    _ limits: PropertyListLimits
  ) -> [UInt8]? {
    BinaryPropertyList.replacing(
      [
        (path: ["version"], value: .integer(Int64(version))), (path: ["sent"], value: .date(sent)),
        (path: [Envelope.value, key], value: value),
      ], in: file, limits: limits)
  }

  /// Returns the file that states that the value was cleared.
  static func seal(_ header: Header, _ encoder: BinaryEncoder) throws -> [UInt8] {
    try encoder.encode(header.add(to:))
  }
}

/// The present version of a channel, and its next version.
///
/// Versions rise by 1. If the latest version is not known, because it is damaged or was removed,
/// the next version is the number of microseconds since 1970. Because no channel is written a
/// million times a second, this number is greater than every earlier version, and no version is
/// used twice. If the version of a kept earlier value is known, the next version is also at least a
/// million greater than that, independent of the clock: all versions after the kept one were
/// written within a second.
struct VersionCount: Equatable {
  /// 0 if the channel was never written; nil if the version is not known.
  let present: Int?
  let next: Int
  /// What the next value hands on; see ``Envelope/Header/operations``.
  private(set) var operations: [String: String]?
  /// The home of a copy.
  private(set) var home: ChannelHome?

  init(_ content: Slot.Content, limits: PropertyListLimits, sinceEpoch: Int64) {
    let fresh = Self.fresh(sinceEpoch)
    switch content {
    case .nothing:
      self.init(present: 0, next: 1)
    case .damaged, .tooLarge:
      self.init(present: nil, next: fresh)
    case .value(let bytes, let isRecovered):
      let opened = try? Envelope.OpenFile(bytes, BinaryDecoder(limits: limits))
      guard let version = opened?.header.version else {
        self.init(present: nil, next: fresh)
        return
      }
      defer { (operations, home) = (opened?.header.operations, opened?.header.home) }
      let step = isRecovered ? Self.recoveryStep : 1
      guard version <= Self.last - step else {
        self.init(present: version, next: fresh)
        return
      }
      self.init(present: version, next: isRecovered ? max(version + step, fresh) : version + 1)
    }
  }

  /// The count of a channel that was never written, in a container with removed channels.
  ///
  /// - Parameter removed: the greatest version of all removed channels; nil if not known.
  init(removed: Int?, sinceEpoch: Int64) {
    self.init(present: 0, next: removed.map { $0 + 1 } ?? Self.fresh(sinceEpoch))
  }

  /// The count of a value whose version is known and is not the last.
  init(_ version: Int) { self.init(present: version, next: version + 1) }

  private static func fresh(_ sinceEpoch: Int64) -> Int {
    Int(clamping: max(1, sinceEpoch / 1000))
  }

  /// Hands on that a machine has asked for a change.
  mutating func handOn(_ operation: String, of machine: String) {
    operations = operations ?? [:]
    operations?[machine] = operation
  }

  /// The note for ``Slot/note``: nil if the next change must read the operations.
  var note: Int? { operations == nil ? next : nil }

  /// The greatest version: a greater number is not from this library.
  ///
  /// Only an invented version is so large, and then the next version is computed as if the present
  /// version were not known.
  static let last = Int.max - 1
  private static let recoveryStep = 1_000_000

  private init(present: Int?, next: Int) {
    self.present = present
    self.next = next
  }
}
