internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists

/// The name of a file in `live/<incarnation>/`: `<stamp>,<what>,<id>,<deadline>`.
///
/// The letter `q` is a request, `m` a message without reply, and `c` a message whose sender waits
/// for the confirmation of a handler. `a` is a reply, with the id of its request and no deadline;
/// `y` and `n` are replies that consist of yes or no alone. By the deadline, a sender that frees
/// space recognizes files without a reader.
struct LiveName: Hashable, Sendable {
  /// The raw values are the ASCII codes of the letters.
  enum Letter: UInt8 {
    /// The letter `q`.
    case question = 0x71
    /// The letters `m` and `c`.
    case message = 0x6D, confirmed = 0x63
    /// The letter `a`.
    case answer = 0x61
    /// The letters `y` and `n`.
    case yes = 0x79, no = 0x6E

    var isMessage: Bool { self == .message || self == .confirmed }
    var isAnswer: Bool { self == .answer || word != nil }

    /// The reply that the letter itself contains, without reading the file.
    var word: Bool? {
      switch self {
      case .yes: true
      case .no: false
      case .question, .message, .confirmed, .answer: nil
      }
    }
  }

  let letter: Letter
  let id: String
  /// In nanoseconds since the machine was started.
  let deadline: Int64?
  let text: String

  init(_ stamp: MessageStamp, _ letter: Letter, id: String, deadline: Int64? = nil) {
    self.letter = letter
    self.id = id
    self.deadline = deadline
    text = NameWriter.text(capacity: 40 + id.utf8.count) { name in
      name.add(stamp)
      name.add(Self.comma)
      name.add(letter.rawValue)
      name.add(Self.comma)
      name.add(id)
      if let deadline {
        name.add(Self.comma)
        name.add(UInt64(max(0, deadline)), digits: 16)
      }
    }
  }

  private static let comma = UInt8(ascii: ",")

  /// The time of sending, in nanoseconds since the machine was started.
  var sent: Int64 {
    var text = text
    return text.withUTF8 { Int64(MessageName.number(5, 15, of: $0) ?? 0) }
  }

  /// Returns nil for a name of another form.
  init?(_ text: String) {
    var text = text
    let parts = text.withUTF8 { bytes -> (Letter, id: String, deadline: Int64?)? in
      guard bytes.count == 39 || bytes.count == 56, bytes[20] == Self.comma,
        bytes[22] == Self.comma,
        let letter = Letter(rawValue: bytes[21]),
        MessageName.number(0, 20, of: bytes) != nil, MessageName.number(23, 16, of: bytes) != nil
      else { return nil }
      let id = String(decoding: UnsafeBufferPointer(rebasing: bytes[23..<39]), as: UTF8.self)
      guard bytes.count == 56 else { return (letter, id, nil) }
      guard bytes[39] == Self.comma,
        let deadline = MessageName.number(40, 16, of: bytes).flatMap(Int64.init(exactly:))
      else { return nil }
      return (letter, id, deadline)
    }
    guard let parts else { return nil }
    (letter, id, deadline) = parts
    self.text = text
  }
}

/// The form of a live file: a dictionary of the fields of ``Header``, and of `value`.
///
/// A reply has `value`, or `error` if the request is refused; with `unreachable`, the request has
/// not reached its receiver.
enum LiveFile {
  /// The header of a request or a message.
  struct Header: FileRecord {
    /// The sender as in names of messages: escaped, `~` and digits for a guest.
    private(set) var from = ""
    /// Nil if the text is not an incarnation.
    private(set) var incarnation: Incarnation?
    private(set) var kind = ""
    /// In nanoseconds since the machine was started.
    private(set) var deadline: Int64 = 0
    /// Nil without headers.
    private(set) var headers: SenderHeaders?

    mutating func visit(_ fields: inout some FieldVisitor) throws {
      try fields.field("from", &from)
      var digits = incarnation?.rawValue ?? ""
      try fields.field("incarnation", &digits)
      incarnation = Incarnation(rawValue: digits)
      try fields.field("kind", &kind)
      try fields.field("deadline", &deadline)
      try fields.check("deadline", deadline >= 0, "\(deadline) is not a time")
      try fields.optional("headers", &headers)
    }
  }

  struct RefusalBody: Codable {
    let error: String
    var unreachable: Bool?
  }

  /// Returns the value of a reply, or the refusal of the request.
  static func answer<Value: Decodable>(
    as type: Value.Type, in file: BinaryDocument, _ decoder: BinaryDecoder
  ) throws -> Result<Value, LiveRefusal> {
    guard file.fields?.has("error", near: 0) ?? decoder.has("error", in: file) else {
      return .success(try decoder.value(as: type, in: file))
    }
    let refusal = try decoder.decode(RefusalBody.self, from: file)
    return .failure(
      LiveRefusal(reason: refusal.error, isUnreachable: refusal.unreachable ?? false))
  }

  struct LiveRefusal: Error {
    let reason: String
    /// Whether the reply is of a carrier that could not pass the request on to another machine.
    let isUnreachable: Bool
  }
}

extension BinaryEncoder {
  /// Encodes a file with a request or a message.
  func seal<Value: Encodable>(_ header: LiveFile.Header, _ value: Value) throws -> [UInt8] {
    try encode(value, forKey: "value", header.add(to:))
  }
}

/// An outgoing reply.
///
/// Many replies are a plain yes: the replies of presenters, and the confirmations of messages. A
/// plain yes or no is the name of an empty file, which takes two system calls. Writing, renaming,
/// reading and removing a file takes ten.
enum LiveAnswer: Sendable {
  case word(Bool)
  /// The bytes of a file.
  case content([UInt8])

  /// - Parameter value: the value of the reply.
  init<Value: Encodable>(_ value: Value, limits: PropertyListLimits) throws {
    if Value.self == Bool.self, let word = value as? Bool {
      self = .word(word)
    } else {
      self = .content(try Self.bytes(value, limits: limits))
    }
  }

  private static func bytes<Value: Encodable>(
    _ value: Value, limits: PropertyListLimits
  ) throws -> [UInt8] {
    try BinaryEncoder(limits: limits).encode(value, forKey: "value") { _ in }
  }

  /// Returns the content of a file with this reply.
  func bytes() throws -> [UInt8] {
    switch self {
    case .word(let word): try Self.bytes(word, limits: .default)
    case .content(let bytes): bytes
    }
  }
}
