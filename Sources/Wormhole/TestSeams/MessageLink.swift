internal import SharedContainer

/// What stands between members and does to what they send what a test has planned.
///
/// It belongs to those who receive: they ask it about what has come, and what it holds back lies
/// where it lay. So nothing that it does can lose a guaranteed message.
package protocol MessageLink: AnyObject, Sendable {
  /// Whether two members cannot reach each other.
  func isCut(between one: String, and other: String) -> Bool

  /// Has a closure called after each cut and each healing, as long as the answer is kept.
  func watch(_ changed: @escaping @Sendable () -> Void) -> any AnyObject & Sendable

  /// Which of the letters in an inbox have come, of all that lie there, in the order of sending.
  ///
  /// - Parameter again: is called when more have.
  func haveArrived(
    _ letters: [LinkLetter], again: @escaping @Sendable () -> Void
  ) -> [Bool]

  /// Whether it is as if the process had died just before this acknowledgement.
  ///
  /// - Parameter place: which of the letter's messages was handled.
  func losesAcknowledgement(of letter: LinkLetter, place: Int) -> Bool

  /// Calls the closure when something arrives that is for now; perhaps never.
  func carry(_ letter: LinkLetter, _ arrive: @escaping @Sendable () -> Void)
}

/// Something on its way, as a link sees it.
package struct LinkLetter: Sendable {
  /// What it is; each is counted for itself.
  package enum Kind: Int, Sendable { case guaranteed, immediate, question, answer }

  package let kind: Kind
  /// Unlike that of any other in the same place.
  package let name: String
  /// Who sent it; empty if that is no member.
  package let from: String
  package let to: String
  package let isUrgent: Bool

  init(_ name: MessageName, to: String) {
    kind = .guaranteed
    self.name = name.text
    from = if case .member(let sender) = name.sender { sender } else { "" }
    self.to = to
    isUrgent = name.isUrgent
  }

  init(_ name: LiveName, from: String?, to: String) {
    kind =
      switch name.letter {
      case .message, .confirmed: .immediate
      case .question: .question
      case .answer, .yes, .no: .answer
      }
    self.name = name.text
    self.from = from ?? ""
    self.to = to
    isUrgent = false
  }
}

/// A link as one of two members sees it.
struct LinkLine: Sendable {
  let link: any MessageLink
  let own: String
  let other: String

  var isCut: Bool { link.isCut(between: own, and: other) }
}

extension Wormhole.Reachability {
  /// How somebody looks who is there and cannot be reached.
  var whenCut: Self { self == .immediatelyReachable ? .backgroundOnly : self }
}

extension Mailbox {
  /// What a listing has shown, without what the link holds back.
  func arrived(_ names: [MessageName], before start: MessageStamp) -> [MessageName] {
    guard let link = hole.options.link else { return names }
    // What was sent later may not be all there is, and is listed once more.
    let all = names.sorted()
    let settled = all.filter { $0.stamp < start }
    let here = link.haveArrived(settled.map { LinkLetter($0, to: home.name) }) { [weak self] in
      self?.wake(urgent: true)
    }
    return zip(settled, here).filter(\.1).map(\.0) + all.filter { $0.stamp >= start }
  }

  /// Whether the link has a message come once more, as if this process had died before it said
  /// that it was handled.
  func isAcknowledgementLost(_ name: MessageName, _ place: Int) -> Bool {
    guard hasLink, let link = hole.options.link, attempts > 1 else { return false }
    return link.losesAcknowledgement(of: LinkLetter(name, to: home.name), place: place)
  }
}
