internal import FoundationEssentials
internal import PropertyLists
internal import SharedContainer

/// The name of a file in `live/<incarnation>/`: `<stamp>,<what>,<id>,<deadline>`.
///
/// What it is: `q` a question, `m` a message that nobody answers, `c` one whose sender waits to be
/// told that it was heard, `a` an answer, with the id of its question and no deadline; `y` and `n`
/// are answers that say yes or no, and nothing else. By the deadline whoever makes room knows what
/// nobody reads any more.
struct LiveName: Hashable, Sendable {
  enum Letter: Character {
    case question = "q"
    case message = "m", confirmed = "c"
    case answer = "a"
    case yes = "y"
    case no = "n"

    var isMessage: Bool { self == .message || self == .confirmed }
    var isAnswer: Bool { self == .answer || word != nil }

    /// What it says by itself, without a look at the file.
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

  /// When, in nanoseconds since the machine was started.
  var sent: Int64 { Int64(text.prefix(20).suffix(15), radix: 16) ?? 0 }

  /// Nil for a name that is in no such form.
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
  /// As it stands in names: five hexadecimal digits and fifteen.
  var text: String {
    Self.digits(Int64(epoch), 5) + Self.digits(nanoseconds, 15)
  }

  /// Hexadecimal, with zeros before it.
  fileprivate static func digits(_ number: Int64, _ count: Int) -> String {
    let digits = String(max(0, number), radix: 16)
    return String(repeating: "0", count: max(0, count - digits.count)) + digits
  }
}

/// The form of such a file: a dictionary of `from`, `incarnation`, `kind`, `deadline` and `value`;
/// an answer has `value`, or `error` if there is none.
enum LiveFile {
  enum Key: String, CodingKey { case from, incarnation, kind, deadline, value, error }

  /// Of a question or a message.
  struct Header: Decodable {
    /// As in names of messages: escaped, `~` and digits for a guest.
    let from: String
    /// Nil for what is none.
    let incarnation: Incarnation?
    let kind: String
    /// In nanoseconds since the machine was started.
    let deadline: Int64

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      from = try container.decode(String.self, forKey: .from)
      let digits = try container.decode(String.self, forKey: .incarnation)
      incarnation = Incarnation(rawValue: digits)
      kind = try container.decode(String.self, forKey: .kind)
      deadline = try container.decode(Int64.self, forKey: .deadline)
      guard deadline >= 0 else {
        throw DecodingError.dataCorruptedError(
          forKey: .deadline, in: container, debugDescription: "\(deadline) is no moment")
      }
    }

    init(from: String, incarnation: Incarnation?, kind: String, deadline: Int64) {
      self.from = from
      self.incarnation = incarnation
      self.kind = kind
      self.deadline = deadline
    }
  }

  struct Asking<Value: Encodable>: Encodable {
    let header: Header
    let value: Value

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(header.from, forKey: .from)
      try container.encode(header.incarnation?.rawValue ?? "", forKey: .incarnation)
      try container.encode(header.kind, forKey: .kind)
      try container.encode(header.deadline, forKey: .deadline)
      try container.encode(value, forKey: .value)
    }
  }

  struct Answering<Value: Encodable>: Encodable {
    let value: Value

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(value, forKey: .value)
    }
  }

  struct Refusing: Codable {
    let error: String
  }

  /// An answer, or the word that there is none.
  struct Answer<Value: Decodable>: Decodable {
    let result: Result<Value, Refusal>

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      if let reason = try container.decodeIfPresent(String.self, forKey: .error) {
        result = .failure(Refusal(reason: reason))
      } else {
        result = .success(try container.decode(Value.self, forKey: .value))
      }
    }
  }

  struct Refusal: Error { let reason: String }
}

/// An answer on its way.
///
/// Many only say yes: a presenter's, and that a message was heard. Such a word stands in the name
/// of an empty file, which takes two calls of the system; to write a file, to rename it, to read it
/// and to remove it takes ten.
enum LiveAnswer: Sendable {
  case word(Bool)
  /// The bytes of a file.
  case content([UInt8])

  /// - Parameter value: what is answered.
  init<Value: Encodable>(_ value: Value, limits: PropertyListLimits) throws {
    if Value.self == Bool.self, let word = value as? Bool {
      self = .word(word)
    } else {
      self = .content(try BinaryEncoder(limits: limits).encode(LiveFile.Answering(value: value)))
    }
  }

  /// What a file of it holds.
  func bytes() throws -> [UInt8] {
    switch self {
    case .word(let word): try BinaryEncoder().encode(LiveFile.Answering(value: word))
    case .content(let bytes): bytes
    }
  }
}
