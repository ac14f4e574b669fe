internal import WormholeContainerStorage
internal import WormholeSyscalls

/// When a message was sent, in a form comparable across processes and restarts of the machine: the
/// epoch, and the nanoseconds since the machine started.
///
/// A stamp is greater than the stamp of every send that had returned before its own send began, in
/// any process, without a record kept between two sends.
package struct MessageStamp: Hashable, Comparable, Sendable {
  let epoch: Int
  let nanoseconds: Int64

  /// Takes the present time.
  init(_ storage: Container) throws(WormholeError) {
    epoch = try storage.epoch()
    nanoseconds = storage.options.environment.sinceBoot()
  }

  package init(epoch: Int, nanoseconds: Int64) {
    self.epoch = epoch
    self.nanoseconds = nanoseconds
  }

  package static func < (left: MessageStamp, right: MessageStamp) -> Bool {
    (left.epoch, left.nanoseconds) < (right.epoch, right.nanoseconds)
  }

  func advanced(by nanoseconds: Int64) -> MessageStamp {
    MessageStamp(epoch: epoch, nanoseconds: self.nanoseconds + nanoseconds)
  }
}

/// Writes the parts of a file's name into the storage of its text.
struct NameWriter {
  private let buffer: UnsafeMutableBufferPointer<UInt8>
  private var count = 0

  /// Returns the text that the closure writes; a text longer than the capacity ends the process.
  static func text(capacity: Int, _ write: (inout NameWriter) -> Void) -> String {
    String(unsafeUninitializedCapacity: capacity) { buffer in
      var writer = NameWriter(buffer: buffer)
      write(&writer)
      return writer.count
    }
  }

  private init(buffer: UnsafeMutableBufferPointer<UInt8>) { self.buffer = buffer }

  mutating func add(_ byte: UInt8) {
    precondition(count < buffer.count)
    buffer[count] = byte
    count += 1
  }

  mutating func add(_ text: String) { for byte in text.utf8 { add(byte) } }

  /// Adds five hexadecimal digits for the epoch, and fifteen for the nanoseconds.
  mutating func add(_ stamp: MessageStamp) {
    add(UInt64(stamp.epoch), digits: 5)
    add(UInt64(max(0, stamp.nanoseconds)), digits: 15)
  }

  /// Adds the lowest hexadecimal digits of a number.
  mutating func add(_ number: UInt64, digits: Int) {
    for place in (0..<digits).reversed() {
      let digit = UInt8(truncatingIfNeeded: number >> UInt64(4 * place)) & 15
      add(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
  }
}

/// The name of a message's file, unchanged until the message is settled:
/// `<priority>,<stamp>,<marks>,<id>,<from>`.
///
///     1,0000100001f3d77a2b4c,r01,3f9a0c11d2e84b67,phone
///
/// In a queue, the id of a message with an ordering key is followed by `~` and the key's twelve
/// digits.
///
/// Names sort in the order of delivery. The stamp has five digits for the epoch and fifteen for the
/// nanoseconds, all hexadecimal. The marks are `r` if the sender wants a receipt, `n` if not, and
/// `a` for a retried dead letter, which causes no receipt; and the number of messages in the file.
/// The id is the sender's choice; `from` is the sender's escaped name, `~` and sixteen digits for a
/// guest, or empty. No escaped name contains a comma.
package struct MessageName: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let text: String

  package var description: String { text }

  /// The longest id, after escaping.
  static let longestIdentifier = 36
  /// The longest name: a file system permits 255 bytes, and the longest addition is that of a
  /// claim, or of a receipt.
  static let longest = 245

  package init(
    isUrgent: Bool, _ stamp: MessageStamp, wantsReceipt: Bool, count: Int, id: String,
    key: OrderingKey? = nil, from: String
  ) {
    let length = 29 + id.utf8.count + 1 + OrderingKey.size + from.utf8.count
    text = NameWriter.text(capacity: length) { name in
      name.add(UInt8(ascii: isUrgent ? "0" : "1"))
      name.add(Self.comma)
      name.add(stamp)
      name.add(Self.comma)
      name.add(UInt8(ascii: wantsReceipt ? "r" : "n"))
      name.add(UInt64(count), digits: 2)
      name.add(Self.comma)
      name.add(id)
      if let key {
        name.add(Self.tilde)
        name.add(key.digits, digits: OrderingKey.size)
      }
      name.add(Self.comma)
      name.add(from)
    }
  }

  /// Nil for a text in another form.
  package init?(_ text: String) {
    var text = text
    let isOurs = text.withUTF8 { Self.isName($0) }
    guard isOurs else { return nil }
    self.text = text
  }

  init?(_ name: UnsafePointer<CChar>) {
    let length = name.length
    let isOurs = name.withMemoryRebound(to: UInt8.self, capacity: length) {
      Self.isName(UnsafeBufferPointer(start: $0, count: length))
    }
    guard isOurs else { return nil }
    text = String(cString: name)
  }

  private static let comma = UInt8(ascii: ",")
  fileprivate static let tilde = UInt8(ascii: "~")

  private static func isName(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard bytes.count >= 29, bytes[0] == UInt8(ascii: "0") || bytes[0] == UInt8(ascii: "1"),
      bytes[1] == comma, bytes[22] == comma, bytes[26] == comma,
      isMark(bytes[23]),
      number(2, 20, of: bytes) != nil, number(24, 2, of: bytes) != nil,
      bytes[24] != UInt8(ascii: "0") || bytes[25] != UInt8(ascii: "0")
    else { return false }
    // One comma more, after a nonempty id; the rest are characters of escaped names.
    var (place, last, mark) = (27, 0, 0)
    while place < bytes.count {
      let byte = bytes[place]
      guard byte > 0x20, byte < 0x7f, byte != UInt8(ascii: "/") else { return false }
      if byte == comma {
        guard last == 0 else { return false }
        last = place
      } else if byte == tilde, last == 0, mark == 0 {
        mark = place
      }
      place += 1
    }
    guard last > 27 else { return false }
    // An id that is not empty, without or with an ordering key.
    return mark == 0
      || mark > 27 && last - mark - 1 == OrderingKey.size
        && number(mark + 1, OrderingKey.size, of: bytes) != nil
  }

  private static func isMark(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "r") || byte == UInt8(ascii: "n") || byte == UInt8(ascii: "a")
  }

  private static func digit(_ byte: UInt8) -> UInt64? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(byte - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(byte - UInt8(ascii: "a") + 10)
    default: nil
    }
  }

  /// Returns the number that the digits state; nil if another character is among the digits.
  ///
  /// A send reads many names. For each byte of a slice, a build without optimization would look up
  /// the slice's type again, under a lock of the whole process.
  static func number(
    _ from: Int, _ count: Int, of bytes: UnsafeBufferPointer<UInt8>
  ) -> UInt64? {
    var (number, place) = (UInt64(0), from)
    while place < from + count {
      guard let digit = digit(bytes[place]) else { return nil }
      number = number << 4 | digit
      place += 1
    }
    return number
  }

  private func number(_ from: Int, _ count: Int) -> UInt64 {
    bytes { Self.number(from, count, of: $0) ?? 0 }
  }

  /// Without a copy, because names always have storage of their own.
  ///
  /// Through a span, reading a number of a name takes 1.7 times as long.
  @inline(__always)
  private func bytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    text.utf8.withContiguousStorageIfAvailable(body)
      ?? Array(text.utf8).withUnsafeBufferPointer(body)
  }

  // MARK: Parts

  package var isUrgent: Bool { bytes { $0[0] } == UInt8(ascii: "0") }

  var stamp: MessageStamp {
    MessageStamp(epoch: Int(number(2, 5)), nanoseconds: Int64(number(7, 15)))
  }

  package var wantsReceipt: Bool { bytes { $0[23] } == UInt8(ascii: "r") }

  /// Whether the message was dead-lettered before.
  var isRetried: Bool { bytes { $0[23] } == UInt8(ascii: "a") }

  /// The name of the same message for a retry of its dead letter.
  var retried: MessageName {
    MessageName(marked("a"))!
  }

  /// The name of the file sent with the message, through all retries: the same name, with the mark
  /// `f`.
  package var fileName: String { marked("f") }

  /// Returns the possible names of the message of a file; nil for a file name in another form.
  package static func messages(ofFile fileName: String) -> [String]? {
    let bytes = Array(fileName.utf8)
    guard bytes.count > 23, bytes[23] == UInt8(ascii: "f") else { return nil }
    var name = bytes
    name[23] = UInt8(ascii: "r")
    return MessageName(String(decoding: name, as: UTF8.self)).map { name in
      ["r", "n", "a"].map { name.marked($0) }
    }
  }

  /// The same name with another stamp.
  func stamped(_ stamp: MessageStamp) -> MessageName {
    MessageName(
      isUrgent: isUrgent, stamp, wantsReceipt: wantsReceipt, count: count, id: escapedIdentifier,
      key: key, from: escapedSender)
  }

  private func marked(_ mark: Unicode.Scalar) -> String {
    var bytes = Array(text.utf8)
    bytes[23] = UInt8(ascii: mark)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// How many messages are in the file.
  var count: Int { Int(number(24, 2)) }

  /// The id as in the name, escaped.
  var escapedIdentifier: String {
    bytes { bytes in
      var end = 27
      while bytes[end] != Self.comma, bytes[end] != Self.tilde { end += 1 }
      return String(decoding: bytes[27..<end], as: UTF8.self)
    }
  }

  /// The ordering key; nil for a message without one.
  package var key: OrderingKey? {
    bytes { bytes in
      var place = 27
      while bytes[place] != Self.comma {
        defer { place += 1 }
        guard bytes[place] == Self.tilde else { continue }
        return OrderingKey(
          digits: Self.number(place + 1, OrderingKey.size, of: bytes) ?? 0)
      }
      return nil
    }
  }

  package var id: String { EscapedName.unescape(escapedIdentifier) ?? escapedIdentifier }

  /// The sender as in the name, escaped; empty if the name contains no sender.
  var escapedSender: String {
    bytes { bytes in
      var comma = 27
      while bytes[comma] != Self.comma { comma += 1 }
      return String(decoding: bytes[(comma + 1)...], as: UTF8.self)
    }
  }

  package var sender: Sender? { Sender(escapedSender) }

  /// The file that asks a carrier to cancel the claimed message.
  var cancellationFile: String { text + Self.cancellationMark }
  static let cancellationMark = ",cancel"

  /// The file with the reason for a dead letter; no message's name has two commas after its id.
  var reasonFile: String { text + Self.reasonMark }
  static let reasonMark = ",reason"

  package static func < (left: MessageName, right: MessageName) -> Bool { left.text < right.text }

  /// Whether this name precedes a name in the kernel's form.
  func precedes(_ name: UnsafePointer<CChar>) -> Bool {
    bytes { bytes in
      // A C char is unsigned on some machines.
      func other(_ place: Int) -> UInt8 { UInt8(truncatingIfNeeded: name[place]) }
      var place = 0
      while place < bytes.count, bytes[place] == other(place) { place += 1 }
      return place == bytes.count ? other(place) != 0 : bytes[place] < other(place)
    }
  }

  /// A number that distinguishes the name, the same for as long as the process runs.
  ///
  /// Among a million names, two share a number in one of forty million runs.
  var digest: Int {
    bytes { bytes in
      var hasher = Hasher()
      hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
      return hasher.finalize()
    }
  }
}

extension MessageName {
  /// The sender of a message, for the report of its outcome.
  package enum Sender: Hashable, Sendable {
    case member(String)
    case guest(String)

    init?(_ escaped: String) {
      if escaped.utf8.first == MessageName.tilde {
        self = .guest(String(Substring(escaped.utf8.dropFirst())))
      } else if let name = EscapedName.unescape(escaped) {
        self = .member(name)
      } else {
        return nil
      }
    }
  }

  /// Escapes an id for its use in a name.
  static func escape(id: String) throws(WormholeError) -> String {
    do throws(EscapedName.Problem) {
      let escaped = try EscapedName.escape(id)
      guard escaped.utf8.count <= longestIdentifier else {
        throw EscapedName.Problem.tooLong(escaped: escaped.utf8.count)
      }
      return escaped
    } catch {
      switch error {
      case .empty:
        throw WormholeError(.invalidName, "use identifier", id, because: "the identifier is empty")
      case .tooLong(let length):
        throw WormholeError(
          .invalidName, "use identifier", id,
          because: "the escaped identifier takes \(length) bytes, and the limit is "
            + "\(longestIdentifier)")
      }
    }
  }

  /// The name of one message of a batch, in a file of its own.
  func part(_ index: Int) -> MessageName {
    MessageName(
      isUrgent: isUrgent, stamp, wantsReceipt: false, count: 1,
      id: "\(escapedIdentifier).\(index)", from: escapedSender)
  }
}

/// How a message ended, as in a receipt's name: `<name>.<end>`.
enum MessageEnd: String, CaseIterable, Sendable {
  case ok, cancelled, expired, dead
}

struct ReceiptName: Hashable, Sendable {
  let name: MessageName
  let end: MessageEnd

  var text: String { "\(name.text).\(end.rawValue)" }

  init(_ name: MessageName, _ end: MessageEnd) {
    self.name = name
    self.end = end
  }

  init?(_ text: String) {
    guard let dot = text.lastIndex(of: "."),
      let end = MessageEnd(rawValue: String(text[text.index(after: dot)...])),
      let name = MessageName(String(text[..<dot]))
    else { return nil }
    self.init(name, end)
  }
}
