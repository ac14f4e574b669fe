public import WormholeContainerStorage

extension Member {
  /// Returns the messages sent to this member, for a loop that handles one after the other.
  ///
  /// Asking for the next message acknowledges the last one, also in a cancelled task: the loop's
  /// body has handled it. A loop that is left in another way, by `break`, `return` or an error, has
  /// failed the attempt of its message. If the task is cancelled or the member leaves, the message
  /// of a loop that is left is requeued instead, and no attempt is counted.
  ///
  /// An adapter that asks ahead of the loop, such as a buffer, and a body that only starts a task,
  /// acknowledge before the work is done: take ``deliveries`` there.
  ///
  /// - Parameter kinds: the wanted kinds, as given by the sender; nil for all.
  public func messages(kinds: Set<String>? = nil) -> MessageSequence {
    MessageSequence(deliveries: deliveries(kinds: kinds))
  }

  /// Returns the values of a type that are sent to this member, for a loop that handles one after
  /// the other.
  ///
  /// All rules of ``messages(kinds:)`` apply. A value that does not decode is a failed attempt of
  /// its message, and the loop continues with the next one.
  ///
  /// - Parameters:
  ///   - type: the type of the values.
  ///   - kind: the kind given by the sender; by default the name of the type.
  public func messages<Value: Decodable & Sendable>(
    of type: Value.Type, kind: String? = nil
  ) -> MessageValues<Value> {
    MessageValues(messages: messages(kinds: [kind ?? MessageKind.name(of: type)]))
  }
}

/// The messages sent to a member, as an asynchronous sequence that acknowledges.
///
/// A message is claimed when the loop asks for it, and acknowledged when the loop asks for the next
/// one. Several loops take turns. The sequence ends when the task is cancelled, or when the member
/// leaves. After a member has left, its sequence throws
/// ``WormholeError/Code-swift.struct/notJoined``.
public struct MessageSequence: AsyncSequence, Sendable {
  /// The errors of the iteration.
  public typealias Failure = WormholeError

  let deliveries: Deliveries

  /// Starts to receive.
  public func makeAsyncIterator() -> Iterator {
    Iterator(deliveries.makeAsyncIterator(), deliveries.mailbox)
  }

  /// A receiver for one task.
  public struct Iterator: AsyncIteratorProtocol {
    private var deliveries: Deliveries.Iterator
    private let current: LoopMessage

    fileprivate init(_ deliveries: Deliveries.Iterator, _ mailbox: Mailbox) {
      self.deliveries = deliveries
      current = LoopMessage(mailbox)
    }

    /// Acknowledges the last message, and returns the next one; nil when the task is cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(WormholeError) -> Message? {
      current.acknowledge()
      let message = try await deliveries.next(isolation: actor)
      current.message = message
      return message
    }

    /// Fails the attempt of the message that was returned last.
    fileprivate func reject(_ error: WormholeError) { current.reject(error) }
  }
}

/// The values sent to a member, as an asynchronous sequence that acknowledges.
///
/// All rules of ``MessageSequence`` apply.
public struct MessageValues<Value: Decodable & Sendable>: AsyncSequence, Sendable {
  /// The errors of the iteration.
  public typealias Failure = WormholeError

  let messages: MessageSequence

  /// Starts to receive.
  public func makeAsyncIterator() -> Iterator { Iterator(messages.makeAsyncIterator()) }

  /// A receiver for one task.
  public struct Iterator: AsyncIteratorProtocol {
    private var messages: MessageSequence.Iterator

    fileprivate init(_ messages: MessageSequence.Iterator) { self.messages = messages }

    /// Acknowledges the last message, and returns the value of the next one; nil when the task is
    /// cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(WormholeError) -> Value? {
      while let message = try await messages.next(isolation: actor) {
        do throws(WormholeError) {
          return try message.value(as: Value.self)
        } catch {
          messages.reject(error)
        }
      }
      return nil
    }
  }
}

/// The message that a loop is handling.
///
/// The iterator holds the only reference, so the end of the loop releases this object.
private final class LoopMessage {
  private let mailbox: Mailbox
  var message: Message?

  init(_ mailbox: Mailbox) { self.mailbox = mailbox }

  /// The acknowledgement of a handled message is tried until it is written.
  func acknowledge() {
    if let message = message.take(), !message.hasEnded { message.acknowledgeForSure() }
  }

  func reject(_ error: WormholeError) {
    if let message = message.take() { mailbox.reject(message, "\(error)") }
  }

  deinit {
    guard let message, !message.hasEnded, mailbox.container.storage.isOwned else { return }
    if Task.isCancelled || mailbox.isClosed { return message.interrupt() }
    mailbox.reject(message, "the loop was left while it handled the message")
  }
}
