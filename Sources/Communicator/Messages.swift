public import Foundation
internal import WormholeDropIns

/// The content of messages: property-list values, by name.
public typealias Content = [String: Any]

/// A message that is sent under an identifier of the program's own.
protocol IdentifiedMessage {
  var identifier: String { get }
  var content: Content { get }
  init(identifier: String, content: Content)
}

extension IdentifiedMessage {
  /// The message in its transmitted form.
  var packed: Content { ["identifier": identifier, "content": content] }

  /// Unpacks a message; nil if the content is not a message.
  init?(packed: Content) {
    guard let identifier = packed["identifier"] as? String,
      let content = packed["content"] as? Content
    else { return nil }
    self.init(identifier: identifier, content: content)
  }
}

/// A message for the running counterpart.
public struct ImmediateMessage: IdentifiedMessage {
  /// A closure that receives the error if the message was not handled.
  public typealias ErrorHandler = (any Error) -> Void

  /// The program's name for the message.
  public let identifier: String
  /// The content of the message.
  public let content: Content

  /// Creates a message.
  public init(identifier: String, content: Content = [:]) {
    self.identifier = identifier
    self.content = content
  }

  /// Creates a message.
  public init(_ identifier: String, content: Content = [:]) {
    self.init(identifier: identifier, content: content)
  }
}

/// A message for the running counterpart, which replies.
public struct InteractiveImmediateMessage: IdentifiedMessage {
  /// A closure that takes a reply; in the receiver of the message, it sends the reply, once.
  public typealias Reply = @Sendable (ImmediateMessage) -> Void

  /// The program's name for the message.
  public let identifier: String
  /// The content of the message.
  public let content: Content
  /// The closure that takes the reply.
  public let reply: Reply

  /// Creates a message.
  ///
  /// - Parameter reply: is called on the actor to which the closure is isolated.
  public init(
    identifier: String, content: Content = [:],
    reply: @escaping @isolated(any) (ImmediateMessage) -> Void
  ) {
    self.identifier = identifier
    self.content = content
    let handler = Handler(reply)
    self.reply = { handler.call($0) }
  }

  /// Creates a message whose reply is ignored.
  public init(identifier: String, content: Content = [:]) {
    self.init(identifier: identifier, content: content) { _ in }
  }
}

/// A message that arrives even if a process dies in between, in order.
public struct GuaranteedMessage: IdentifiedMessage {
  /// A closure that is called once, with the outcome.
  public typealias Completion = (Result<Void, any Error>) -> Void

  /// The program's name for the message.
  public let identifier: String
  /// The content of the message.
  public let content: Content

  /// Creates a message.
  public init(identifier: String, content: Content = [:]) {
    self.identifier = identifier
    self.content = content
  }
}

/// Data that arrive even if a process dies in between, in order with guaranteed messages.
///
/// A blob is one message of the container, so no blob ever replaces another, and its size is at
/// most 64 MiB.
public struct Blob {
  /// A closure that is called once, with the outcome.
  public typealias Completion = (Result<Void, any Error>) -> Void

  /// The program's name for the blob.
  public let identifier: String
  /// The data.
  public let content: Data
  /// Additional information about the blob.
  public let metadata: Content?

  /// Creates a blob.
  public init(identifier: String, content: Data, metadata: Content? = nil) {
    self.identifier = identifier
    self.content = content
    self.metadata = metadata
  }

  var packed: Content {
    var packed: Content = ["identifier": identifier, "content": content]
    packed["metadata"] = metadata
    return packed
  }

  init?(packed: Content) {
    guard let identifier = packed["identifier"] as? String, let content = packed["content"] as? Data
    else { return nil }
    self.init(
      identifier: identifier, content: content, metadata: packed["metadata"] as? Content)
  }
}

/// A context, of which the counterpart receives only the latest.
public struct Context {
  /// The content of the context.
  public let content: Content

  /// Creates a context.
  public init(content: Content) { self.content = content }
}

/// The content of the watch's complication.
public struct ComplicationInfo {
  /// A closure that is called once, with the outcome: the number of updates left today.
  public typealias Completion = (Result<Int, any Error>) -> Void

  /// The content for the complication.
  public let content: Content

  /// Creates the content of a complication.
  public init(content: Content) { self.content = content }

  private static let key = "__complication_info__"
  var packed: Content { [Self.key: content] }

  init?(packed: Content) {
    guard let content = packed[Self.key] as? Content else { return nil }
    self.content = content
  }
}
