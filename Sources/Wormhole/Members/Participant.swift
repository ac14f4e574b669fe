internal import WormholeContainerStorage

/// A sender of messages and requests: a member, or a guest.
///
/// A participant is a record. Its outbox, mailboxes and contexts belong to higher layers, which
/// store them in ``services``.
protocol Participant: AnyObject, Sendable {
  var container: SharedContainer { get }
  var home: MemberDirectory { get }
  var incarnation: Incarnation { get }
  /// When the participant joined: messages with earlier stamps are of an earlier incarnation.
  var joined: MessageStamp { get }
  /// The folder where immediate messages for this incarnation arrive.
  var liveFolder: OpenDirectory { get }
  /// The sender in names of messages: a member's escaped name, or `~` and a guest's name.
  var mark: String { get }
  var services: Services { get }
}

extension Participant {
  /// Whether the participant has left.
  var hasLeft: Bool { services.isClosed }
}
