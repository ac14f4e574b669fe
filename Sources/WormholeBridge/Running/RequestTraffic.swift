internal import FoundationEssentials
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Requests and immediate messages in the form for the servers.
///
/// A request is one message of the servers with a reply, and nothing of it is stored anywhere: a
/// request that does not arrive at once never arrives.
final class RequestTraffic {
  var held: [HeldRequest] = []
  /// Asks for guests of other machines; made for the first one.
  var desk: RequestDesk?
  /// The numbers of requests and messages to other machines, and from other machines.
  var (sent, received) = (0, 0)

  static let mostHeld = 256
  static let patience = Duration.seconds(3)

  private enum Key {
    static let (letter, receiver, incarnation, sender) = ("k", "to", "of", "from")
    static let (senderIncarnation, kind, headers, value) = ("by", "kind", "headers", "value")
    static let (left, at, word, content) = ("left", "at", "word", "content")
    static let (error, unreachable) = ("error", "unreachable")
  }

  /// - Parameters:
  ///   - left: the time for which the asker still waits, in nanoseconds.
  ///   - at: the present time of the servers' clock, in nanoseconds since 1970; nil if unknown.
  static func bytes(_ question: CarriedQuestion, left: Int64, at: Int64?) -> [UInt8]? {
    var list: [String: PropertyListValue] = [
      Key.letter: .string(question.letter.rawValue), Key.receiver: .string(question.receiver),
      Key.incarnation: .string(question.incarnation.rawValue), Key.kind: .string(question.kind),
      Key.headers: .dictionary(question.headers.mapValues { .string($0) }),
      Key.value: question.value, Key.left: .integer(left),
    ]
    list[Key.sender] = question.sender.map { .string($0) }
    list[Key.senderIncarnation] = question.senderIncarnation.map { .string($0.rawValue) }
    list[Key.at] = at.map { .integer($0) }
    return try? BinaryEncoder().encode(PropertyListValue.dictionary(list))
  }

  /// Nil for a list in another form: any machine with the right may send any bytes.
  ///
  /// - Parameter now: the present time of the servers' clock, if it is known.
  static func question(
    _ list: PropertyListValue, now: Int64?
  ) -> (question: CarriedQuestion, left: Duration)? {
    func incarnation(_ key: String) -> Incarnation? {
      list[key]?.stringValue.flatMap { Incarnation(rawValue: $0) }
    }
    guard
      let letter = list[Key.letter]?.stringValue.flatMap({ QuestionLetter(rawValue: $0) }),
      let receiver = list[Key.receiver]?.stringValue, (try? EscapedName.escape(receiver)) != nil,
      let addressee = incarnation(Key.incarnation), let kind = list[Key.kind]?.stringValue,
      let value = list[Key.value], let left = list[Key.left]?.intValue, left > 0
    else { return nil }
    let sender = list[Key.sender]?.stringValue
    guard sender == nil || incarnation(Key.senderIncarnation) != nil else { return nil }
    let headers = list[Key.headers]?.dictionaryValue?.compactMapValues(\.stringValue) ?? [:]
    var spent: Int64 = 0
    if let now, let at = list[Key.at]?.intValue {
      spent = max(0, now.subtractingClamped(Int64(at)))
    }
    return (
      CarriedQuestion(
        letter, to: receiver, addressee, from: sender, incarnation(Key.senderIncarnation),
        kind: kind, headers: headers, value),
      .nanoseconds(max(0, Int64(left) - spent))
    )
  }

  static func bytes(_ reply: CarriedReply) -> [UInt8]? {
    let list: PropertyListValue =
      switch reply {
      case .word(let word): [Key.word: .boolean(word)]
      case .content(let bytes): [Key.content: .data(.init(bytes))]
      case .unreachable(let reason):
        [Key.error: .string(reason), Key.unreachable: .boolean(true)]
      case .refused(let reason): [Key.error: .string(reason)]
      }
    return try? BinaryEncoder().encode(list)
  }

  static func reply(_ bytes: [UInt8]) -> CarriedReply? {
    guard let list = try? BinaryPropertyList.decode(bytes) else { return nil }
    if let word = list[Key.word]?.boolValue { return .word(word) }
    if let content = list[Key.content]?.dataValue { return .content(Array(content)) }
    guard let reason = list[Key.error]?.stringValue else { return nil }
    return list[Key.unreachable]?.boolValue == true ? .unreachable(reason) : .refused(reason)
  }
}

/// A request whose asking process is not shown here yet.
struct HeldRequest {
  let question: CarriedQuestion
  let machine: String
  let reply: String?
  /// When the asker waits no longer.
  let end: Instant
  /// When the request fails as unreachable.
  let patienceEnd: Instant
}
