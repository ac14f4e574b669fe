package import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists

/// A message, a piece or an answer from one machine to another, under a number of the flow.
package struct FlowEntry: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    /// A file of messages.
    case message
    /// How a message has ended that the other machine had sent.
    case outcome(Outcome.Status)
    /// The sender of a message would like to cancel it.
    case cancellation
    /// A part of a large message, or of its file, which come before the message.
    case piece(FlowPiece)
    /// The message does not follow its pieces: its sender has cancelled the message, or its
    /// receiver's home has moved.
    case dropped
    /// The receiver's home has moved before the message was received: its sender sends it again.
    case returned
    /// The latest context of the sender in the name.
    case context
    /// A message of a queue, lent to the other machine's workers.
    case job(FlowJob)
    /// How the other machine's workers have ended with a lent message.
    case worked(FlowJob, LoanEnd)
  }

  /// The file on this machine that is kept until the other machine has stored the outcome.
  package enum Source: Hashable, Sendable {
    /// A receipt of the sender's proxy, under the name that the message has here.
    case receipt(of: Carrier.Resident, MessageName)
    /// The file of a refusal; see ``Refusals``.
    case refusal(String)
    /// The end of a lent message; see ``WorkedQueue``.
    case worked(String)
  }

  package let kind: Kind
  /// The receiver of the message: a member or a queue.
  package let receiver: String
  package let isQueue: Bool
  /// The name of the message at its sender; a context has a name of its own, which is no file's.
  package let name: MessageName
  /// Only for outcomes, and only on the machine that sends them.
  package let source: Source?
  /// Whether the outcome is a refusal by the first piece, before the arrival of the message.
  ///
  /// After a move of the receiver's home, a refusal by the past home is void.
  package let isEarly: Bool

  package init(
    _ kind: Kind, to receiver: String, _ name: MessageName, source: Source? = nil,
    isEarly: Bool = false, isQueue: Bool = false
  ) {
    (self.kind, self.receiver, self.name, self.source) = (kind, receiver, name, source)
    (self.isEarly, self.isQueue) = (isEarly, isQueue)
  }

  init(
    _ kind: Kind, to receiver: Carrier.Resident, _ name: MessageName, source: Source? = nil
  ) {
    let isQueue = if case .queue = receiver { true } else { false }
    self.init(kind, to: receiver.name, name, source: source, isQueue: isQueue)
  }

  /// The receiver, as the bridge knows it.
  var resident: Carrier.Resident { isQueue ? .queue(receiver) : .member(receiver) }

  /// What the hash of the flow covers.
  var identity: String {
    var whole = "\(letter),\(receiver),\(name.text)"
    if isQueue { whole += ",queue" }
    if let job { whole += ",\(job.id)" }
    return piece.map { "\(whole),\($0.part.rawValue),\($0.index)" } ?? whole
  }

  var piece: FlowPiece? { if case .piece(let piece) = kind { piece } else { nil } }

  var job: FlowJob? {
    switch kind {
    case .job(let job), .worked(let job, _): job
    default: nil
    }
  }

  private var letter: String {
    switch kind {
    case .message: "m"
    case .outcome: "o"
    case .cancellation: "x"
    case .piece: "p"
    case .dropped: "d"
    case .returned: "b"
    case .context: "c"
    case .job: "j"
    case .worked: "w"
    }
  }

  // MARK: Property lists

  private enum Key {
    static let (kind, receiver, name, end, reason) = ("k", "to", "N", "end", "reason")
    static let (member, guest, receipt, refusal) = ("member", "guest", "receipt", "refusal")
    static let (early, queue, worked) = ("early", "queue", "worked")
  }

  /// - Parameter isRecord: whether to add what only this machine needs.
  func propertyList(isRecord: Bool) -> [String: PropertyListValue] {
    var list: [String: PropertyListValue] = [
      Key.kind: .string(letter), Key.receiver: .string(receiver), Key.name: .string(name.text),
    ]
    if case .outcome(let status) = kind {
      switch status {
      case .delivered: list[Key.end] = "ok"
      case .cancelled: list[Key.end] = "cancelled"
      case .expired: list[Key.end] = "expired"
      case .deadLettered(let reason):
        list[Key.end] = "dead"
        list[Key.reason] = .string(reason)
      }
    }
    if isEarly { list[Key.early] = true }
    if isQueue { list[Key.queue] = true }
    if let job { list.merge(job.propertyList) { own, _ in own } }
    if case .worked(_, let end) = kind { list.merge(end.propertyList) { own, _ in own } }
    if let piece { list.merge(piece.propertyList) { own, _ in own } }
    if isRecord {
      switch source {
      case .receipt(.member(let member), let name):
        list[Key.member] = .string(member)
        list[Key.receipt] = .string(name.text)
      case .receipt(.guest(let digits), let name):
        list[Key.guest] = .string(digits.rawValue)
        list[Key.receipt] = .string(name.text)
      case .refusal(let file): list[Key.refusal] = .string(file)
      case .worked(let file): list[Key.worked] = .string(file)
      case .receipt(.queue, _), nil: break
      }
    }
    return list
  }

  /// Nil for a list in another form: another machine may have written anything.
  init?(_ list: PropertyListValue) {
    guard let receiver = list[Key.receiver]?.stringValue, !receiver.isEmpty,
      (try? EscapedName.escape(receiver)) != nil,
      let name = list[Key.name]?.stringValue.flatMap({ MessageName($0) })
    else { return nil }
    let kind: Kind
    switch list[Key.kind]?.stringValue {
    case "m": kind = .message
    case "x": kind = .cancellation
    case "p":
      guard let piece = FlowPiece(list) else { return nil }
      kind = .piece(piece)
    case "d": kind = .dropped
    case "b": kind = .returned
    case "c": kind = .context
    case "j":
      guard let job = FlowJob(list) else { return nil }
      kind = .job(job)
    case "w":
      guard let job = FlowJob(list), let end = LoanEnd(list) else { return nil }
      kind = .worked(job, end)
    case "o":
      switch list[Key.end]?.stringValue {
      case "ok": kind = .outcome(.delivered)
      case "cancelled": kind = .outcome(.cancelled)
      case "expired": kind = .outcome(.expired)
      case "dead":
        kind = .outcome(.deadLettered(reason: list[Key.reason]?.stringValue ?? ""))
      default: return nil
      }
    default: return nil
    }
    var source: Source?
    if let file = list[Key.refusal]?.stringValue {
      source = .refusal(file)
    } else if let file = list[Key.worked]?.stringValue {
      source = .worked(file)
    } else if let receipt = list[Key.receipt]?.stringValue.flatMap({ MessageName($0) }) {
      if let member = list[Key.member]?.stringValue {
        source = .receipt(of: .member(member), receipt)
      } else if let guest = list[Key.guest]?.stringValue.flatMap({ Incarnation(rawValue: $0) }) {
        source = .receipt(of: .guest(guest), receipt)
      }
    }
    self.init(
      kind, to: receiver, name, source: source, isEarly: list[Key.early]?.boolValue ?? false,
      isQueue: list[Key.queue]?.boolValue ?? false)
  }
}
