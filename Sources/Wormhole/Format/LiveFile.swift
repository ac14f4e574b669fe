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
  enum Letter: Character {
    case question = "q"
    case message = "m", confirmed = "c"
    case answer = "a"
    case yes = "y"
    case no = "n"

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
    let end = deadline.map { "," + MessageStamp.digits($0, 16) } ?? ""
    text = "\(stamp.text),\(letter.rawValue),\(id)\(end)"
  }

  /// The time of sending, in nanoseconds since the machine was started.
  var sent: Int64 { Int64(text.prefix(20).suffix(15), radix: 16) ?? 0 }

  /// Returns nil for a name of another form.
  init?(_ text: String) {
    let bytes = Array(text.utf8)
    let comma = UInt8(ascii: ",")
    guard bytes.count == 39 || bytes.count == 56, bytes[20] == comma, bytes[22] == comma,
      let letter = Letter(rawValue: Character(UnicodeScalar(bytes[21]))),
      (bytes[..<20] + bytes[23..<39]).allSatisfy({ $0.isHexadecimalDigit })
    else { return nil }
    if bytes.count == 56 {
      guard bytes[39] == comma,
        let deadline = Int64(String(decoding: bytes[40...], as: UTF8.self), radix: 16)
      else { return nil }
      self.deadline = deadline
    } else {
      deadline = nil
    }
    self.letter = letter
    id = String(decoding: bytes[23..<39], as: UTF8.self)
    self.text = text
  }
}

extension UInt8 {
  fileprivate var isHexadecimalDigit: Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self)
      || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self)
  }
}

extension MessageStamp {
  /// The stamp as written in names: five hexadecimal digits and fifteen.
  var text: String {
    Self.digits(Int64(epoch), 5) + Self.digits(nanoseconds, 15)
  }

  /// Returns hexadecimal digits, padded with zeros.
  fileprivate static func digits(_ number: Int64, _ count: Int) -> String {
    let digits = String(max(0, number), radix: 16)
    return String(repeating: "0", count: max(0, count - digits.count)) + digits
  }
}

/// The form of a live file: a dictionary of the fields of ``Header``, and of `value`.
///
/// A reply has `value`, or `error` if the request is refused; with `unreachable`, the request has
/// not reached its receiver.
enum LiveFile {
  enum Key: String, CodingKey { case value, error, unreachable }

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
    private(set) var headers: MessageHeaders?

    init() {}

    init(
      from: String, incarnation: Incarnation?, kind: String, deadline: Int64,
      headers: MessageHeaders? = nil
    ) {
      self.from = from
      self.incarnation = incarnation
      self.kind = kind
      self.deadline = deadline
      self.headers = headers
    }

    mutating func visit(_ fields: inout some FieldVisitor) throws {
      try fields.field("from", &from)
      var digits = incarnation?.rawValue ?? ""
      try fields.field("incarnation", &digits)
      incarnation = Incarnation(rawValue: digits)
      try fields.field("kind", &kind)
      try fields.field("deadline", &deadline)
      try fields.check("deadline", deadline >= 0, "\(deadline) is not a time")
      try fields.field("headers", &headers)
    }
  }

  struct ReplyBody<Value: Encodable>: Encodable {
    let value: Value

    func encode(to encoder: any Encoder) throws {
      var storage = encoder.container(keyedBy: Key.self)
      try storage.encode(value, forKey: .value)
    }
  }

  struct RefusalBody: Codable {
    let error: String
    var unreachable: Bool?
  }

  /// A reply, or the refusal of the request.
  struct Answer<Value: Decodable>: Decodable {
    let result: Result<Value, Refusal>

    init(from decoder: any Decoder) throws {
      let storage = try decoder.container(keyedBy: Key.self)
      if let reason = try storage.decodeIfPresent(String.self, forKey: .error) {
        let isUnreachable = try storage.decodeIfPresent(Bool.self, forKey: .unreachable)
        result = .failure(Refusal(reason: reason, isUnreachable: isUnreachable ?? false))
      } else {
        result = .success(try storage.decode(Value.self, forKey: .value))
      }
    }
  }

  struct Refusal: Error {
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
      self = .content(try BinaryEncoder(limits: limits).encode(LiveFile.ReplyBody(value: value)))
    }
  }

  /// Returns the content of a file with this reply.
  func bytes() throws -> [UInt8] {
    switch self {
    case .word(let word): try BinaryEncoder().encode(LiveFile.ReplyBody(value: word))
    case .content(let bytes): bytes
    }
  }
}
