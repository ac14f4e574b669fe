package import WormholeContainerStorage
package import WormholePropertyLists

/// A request or an immediate message on its way to another machine.
package struct CarriedQuestion: Equatable, Sendable {
  package let letter: QuestionLetter
  package let receiver: String
  /// The only process that may receive the request.
  package let incarnation: Incarnation
  /// The member that asks, and its process; nil for a guest.
  package let sender: String?
  package let senderIncarnation: Incarnation?
  package let kind: String
  package let headers: [String: String]
  package let value: PropertyListValue

  package init(
    _ letter: QuestionLetter, to receiver: String, _ incarnation: Incarnation, from sender: String?,
    _ senderIncarnation: Incarnation?, kind: String, headers: [String: String],
    _ value: PropertyListValue
  ) {
    (self.letter, self.receiver, self.incarnation) = (letter, receiver, incarnation)
    (self.sender, self.senderIncarnation) = (sender, senderIncarnation)
    (self.kind, self.headers, self.value) = (kind, headers, value)
  }
}

package enum QuestionLetter: String, Sendable {
  case question = "q"
  case message = "m"
  /// A message whose sender waits for the confirmation of a handler.
  case confirmed = "c"
}

/// The end of a request that another machine has reported.
package enum CarriedReply: Equatable, Sendable {
  /// A plain yes or no.
  case word(Bool)
  /// The file of a reply or of a refusal.
  case content([UInt8])
  /// The process has ended, or cannot be reached.
  case unreachable(String)
  case refused(String)

  /// Nil for a missing reply: the asker's own deadline ends the request.
  init?(_ end: PendingReplies.End) {
    switch end {
    case .success(.word(let word)): self = .word(word)
    case .success(.content(let bytes)): self = .content(bytes)
    case .failure(let error) where error.code == .timedOut: return nil
    case .failure(let error) where error.code == .unreachable: self = .unreachable(error.reason)
    case .failure(let error): self = .refused(error.reason)
    }
  }

  fileprivate func answer() throws -> LiveAnswer {
    switch self {
    case .word(let word): .word(word)
    case .content(let bytes): .content(bytes)
    case .unreachable(let reason):
      .content(try BinaryEncoder().encode(LiveFile.RefusalBody(error: reason, unreachable: true)))
    case .refused(let reason):
      .content(try BinaryEncoder().encode(LiveFile.RefusalBody(error: reason)))
    }
  }
}

/// A request or an immediate message of a program of this machine to a member of another machine.
package struct CarriedRequest: Sendable {
  package let question: CarriedQuestion
  private let live: LiveMailbox
  private let name: LiveName
  private let core: LiveMessage

  /// - Parameter live: the exchange of the proxy.
  init(_ live: LiveMailbox, _ name: LiveName, _ core: LiveMessage) throws(WormholeError) {
    (self.live, self.name, self.core) = (live, name, core)
    let value = try core.value(as: PropertyListValue.self, "carry request")
    let letter: QuestionLetter =
      switch name.letter {
      case .message: .message
      case .confirmed: .confirmed
      default: .question
      }
    question = CarriedQuestion(
      letter, to: live.home.name, live.incarnation, from: core.from,
      core.from == nil ? nil : core.header.incarnation, kind: core.header.kind,
      headers: core.header.headers?.fields ?? [:], value)
  }

  /// The time for which the asker still waits.
  package var timeLeft: Duration { core.timeLeft }

  /// Ends the request; an asker that is gone needs no reply, and a message has none.
  package func answer(_ reply: CarriedReply) {
    guard question.letter != .message else { return }
    live.reply(name, core) { try reply.answer() }
  }
}
