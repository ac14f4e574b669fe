/// A link between members, which treats their messages as a test has planned.
///
/// The link belongs to the receivers: a receiver asks the link which messages have arrived, and a
/// message that the link holds back stays in its file. So the link cannot lose a guaranteed
/// message.
package protocol MessageLink: AnyObject, Sendable {
  /// Returns whether two members cannot reach each other.
  func isCut(between one: String, and other: String) -> Bool

  /// Calls a closure after each cut and each repair, as long as the returned object is retained.
  func watch(_ changed: @escaping @Sendable () -> Void) -> any AnyObject & Sendable

  /// Returns which letters have arrived, of all letters in an inbox, in the order of sending.
  ///
  /// - Parameter again: is called when more letters have arrived.
  func haveArrived(
    _ letters: [LinkLetter], again: @escaping @Sendable () -> Void
  ) -> [Bool]

  /// Returns whether to lose an acknowledgement, as if the process had died just before it.
  ///
  /// - Parameter place: the batch index of the handled message in the letter.
  func losesAcknowledgement(of letter: LinkLetter, place: Int) -> Bool

  /// Calls the closure when an immediate message, request or reply arrives; perhaps never.
  func carry(_ letter: LinkLetter, _ arrive: @escaping @Sendable () -> Void)
}

/// A message, request or reply in transit, as a link sees it.
package struct LinkLetter: Sendable {
  /// The kind of a letter; each kind is counted separately.
  package enum Kind: Int, Sendable { case guaranteed, immediate, question, answer }

  package let kind: Kind
  /// Unique among the letters in the same place.
  package let name: String
  /// The sending member; empty if the sender is not a member.
  package let from: String
  package let to: String
  package let isUrgent: Bool
}

/// A link from the view of one of two members.
struct LinkLine: Sendable {
  let link: any MessageLink
  let own: String
  let other: String

  var isCut: Bool { link.isCut(between: own, and: other) }
}

extension Reachability {
  /// The reachability of a running member behind a cut link.
  var whenCut: Self { self == .running ? .notRunning : self }
}
