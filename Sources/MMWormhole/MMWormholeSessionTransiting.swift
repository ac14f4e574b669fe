internal import DropIns
public import Foundation
internal import PropertyLists
internal import SharedContainer
internal import Syscalls
internal import WatchConnectivity
internal import Wormhole

/// Passes messages to the other side of a watch session.
///
/// Both sides activate it with ``MMWormholeSession/activateListening()``, and listen there. What a
/// process passes it does not hear itself.
public class MMWormholeSessionTransiting: MMWormholeTransiting, ThrowingMessenger,
  @unchecked Sendable  // It holds nothing that changes.
{
  let session = WCSession.default
  /// One who changes the context at a time.
  static let changing = Monitor(0)

  init() {}

  /// Passes a message; false always, since the other side is told by the session.
  public func writeMessageObject(
    _ messageObject: (any NSCoding)?, forIdentifier identifier: String?
  ) -> Bool {
    guard let identifier else { return false }
    attempt { try pass(messageObject, identifier) { DropInLog.tell(.error, $0) } }
    return false
  }

  /// The message that has come last; nil if there is none, or if this way keeps none.
  public func messageObject(forIdentifier identifier: String?) -> Any? {
    guard let identifier else { return nil }
    return attempt { try message(identifier) } ?? nil
  }

  /// Takes a message back, where this way keeps them.
  public func deleteContent(forIdentifier identifier: String?) {
    guard let identifier else { return }
    attempt { try clear(identifier) }
  }

  /// Takes all messages back, where this way keeps them.
  public func deleteContentForAllMessages() { attempt { try clearAll { _, _ in } } }

  func pass(
    _ object: (any NSCoding)?, _ identifier: String,
    failure: @escaping @Sendable (any Error) -> Void
  ) throws {}

  func message(_ identifier: String) throws -> Any? { nil }
  func clear(_ identifier: String) throws -> Int { 0 }
  func clearAll(_ cleared: (String, Int) -> Void) throws {}

  static func explain(_ error: any Error, _ identifier: String) -> WormholeError {
    WormholeError(
      .undelivered, "pass message", identifier,
      because: (error as NSError).localizedDescription)
  }
}

/// Passes messages in the application context: of each identifier the last arrives, also if the
/// other side does not run now.
public final class MMWormholeSessionContextTransiting: MMWormholeSessionTransiting,
  @unchecked Sendable  // As the class above it.
{
  override func pass(
    _ object: (any NSCoding)?, _ identifier: String,
    failure: @escaping @Sendable (any Error) -> Void
  ) throws {
    let value = try StoredMessage.store(object, identifier)
    // Also after a clear it is another number than any before, which the other side may know; and
    // if somebody has made up the greatest there is.
    let now = Int(Date().timeIntervalSince1970 * 1_000_000)
    try change(identifier) { context in
      let before = SessionMessage(context[identifier])?.number ?? 0
      context[identifier] = SessionMessage(number: max(before &+ 1, now), value: value).packed
    }
  }

  override func message(_ identifier: String) throws -> Any? {
    let context = try session.readReceivedApplicationContext()
    guard let message = SessionMessage(context[identifier]) else { return nil }
    return try StoredMessage.object(message.value, identifier)
  }

  override func clear(_ identifier: String) throws -> Int {
    try change(identifier) { $0[identifier] = nil }
    return 0
  }

  override func clearAll(_ cleared: (String, Int) -> Void) throws {
    try change("all") { $0 = $0.filter { SessionMessage($0.value) == nil } }
  }

  private func change(_ identifier: String, _ body: (inout [String: Any]) -> Void) throws {
    try Self.changing.withLock { _ in
      do {
        // What cannot be read is not nothing: all messages in it would be lost.
        var context = try session.readApplicationContext()
        body(&context)
        try session.updateApplicationContext(context)
      } catch {
        throw Self.explain(error, identifier)
      }
    }
  }
}

/// Passes messages to the other side that runs now, or to nobody, which the log is told.
public final class MMWormholeSessionMessageTransiting: MMWormholeSessionTransiting,
  @unchecked Sendable  // As the class above it.
{
  override func pass(
    _ object: (any NSCoding)?, _ identifier: String,
    failure: @escaping @Sendable (any Error) -> Void
  ) throws {
    let value = try StoredMessage.store(object, identifier)
    session.sendMessage(
      [identifier: SessionMessage(number: 0, value: value).packed], replyHandler: nil
    ) { error in
      failure(Self.explain(error, identifier))
    }
  }
}

/// Passes messages that arrive whoever dies meanwhile, all of them, in order; they may be large.
public final class MMWormholeSessionFileTransiting: MMWormholeSessionTransiting,
  @unchecked Sendable  // As the class above it.
{
  override func pass(
    _ object: (any NSCoding)?, _ identifier: String,
    failure: @escaping @Sendable (any Error) -> Void
  ) throws {
    let value = try StoredMessage.store(object, identifier)
    _ = session.transferBlob([identifier: SessionMessage(number: 0, value: value).packed])
  }
}

/// A message on its way: with a number, so that the same again is another context.
struct SessionMessage {
  private static let mark = "MMWormhole.message"

  let number: Int
  let value: PropertyListValue

  init(number: Int, value: PropertyListValue) {
    self.number = number
    self.value = value
  }

  /// Nil if it is something else.
  init?(_ packed: Any?) {
    guard let packed = packed as? [String: Any], let inside = packed[Self.mark],
      let number = packed["number"] as? Int, let value = try? PropertyListValue(any: inside)
    else { return nil }
    self.init(number: number, value: value)
  }

  var packed: [String: Any] { [Self.mark: value.foundation, "number": number] }
}
