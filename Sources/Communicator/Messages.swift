public import Foundation

/// What messages hold: property-list values, by name.
public typealias Content = [String: Any]

/// Something that is sent under an identifier of the program's own.
protocol Identified {
  var identifier: String { get }
  var content: Content { get }
  init(identifier: String, content: Content)
}

extension Identified {
  /// As it is sent.
  var packed: Content { ["identifier": identifier, "content": content] }

  /// Nil if it is none.
  init?(packed: Content) {
    guard let identifier = packed["identifier"] as? String,
      let content = packed["content"] as? Content
    else { return nil }
    self.init(identifier: identifier, content: content)
  }
}

/// A message for the counterpart that runs now.
public struct ImmediateMessage: Identified {
  /// Is told why it was not handled.
  public typealias ErrorHandler = @Sendable (any Error) -> Void

  /// What the program calls it.
  public let identifier: String
  /// What it holds.
  public let content: Content

  /// Makes a message.
  public init(identifier: String, content: Content = [:]) {
    self.identifier = identifier
    self.content = content
  }

  /// Makes a message.
  public init(_ identifier: String, content: Content = [:]) {
    self.init(identifier: identifier, content: content)
  }
}

/// A message for the counterpart that runs now, which replies.
public struct InteractiveImmediateMessage: Identified {
  /// Takes a reply; on the side that has received the message it sends it, once.
  public typealias Reply = @Sendable (ImmediateMessage) -> Void

  /// What the program calls it.
  public let identifier: String
  /// What it holds.
  public let content: Content
  /// Takes the reply.
  public let reply: Reply

  /// Makes a message.
  @preconcurrency
  public init(identifier: String, content: Content = [:], reply: @escaping Reply) {
    self.identifier = identifier
    self.content = content
    self.reply = reply
  }

  /// Makes a message whose reply nobody wants.
  public init(identifier: String, content: Content = [:]) {
    self.init(identifier: identifier, content: content) { _ in }
  }
}

/// A message that arrives whoever dies meanwhile, in order.
public struct GuaranteedMessage: Identified {
  /// Is told the end, once.
  public typealias Completion = @Sendable (Result<Void, any Error>) -> Void

  /// What the program calls it.
  public let identifier: String
  /// What it holds.
  public let content: Content

  /// Makes a message.
  public init(identifier: String, content: Content = [:]) {
    self.identifier = identifier
    self.content = content
  }
}

/// Data that arrive whoever dies meanwhile, in order with guaranteed messages.
///
/// They are one message of the container, so none ever takes another's place, and 64 MiB is the
/// most that they may have.
public struct Blob {
  /// Is told the end, once.
  public typealias Completion = @Sendable (Result<Void, any Error>) -> Void

  /// What the program calls it.
  public let identifier: String
  /// What it holds.
  public let content: Data
  /// What is told of it.
  public let metadata: Content?

  /// Makes a blob.
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

/// A state, of which the latest counts.
public struct Context {
  /// What it holds.
  public let content: Content

  /// Makes a state.
  public init(content: Content) { self.content = content }
}

/// What the watch's complication shows.
public struct ComplicationInfo {
  /// Is told the end, once: how many more there may be today.
  public typealias Completion = @Sendable (Result<Int, any Error>) -> Void

  /// What it holds.
  public let content: Content

  /// Makes one.
  public init(content: Content) { self.content = content }

  private static let key = "__complication_info__"
  var packed: Content { [Self.key: content] }

  init?(packed: Content) {
    guard let content = packed[Self.key] as? Content else { return nil }
    self.content = content
  }
}
