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
public class MMWormholeSessionTransiting: MMWormholeTransiting, @unchecked Sendable {
  // It holds nothing that changes.

  let session = WCSession.default
  /// One who changes the context at a time.
  static let changing = Monitor(())

  init() {}

  /// Passes a message; false always, since the other side is told by the session.
  public func writeMessageObject(
    _ messageObject: (any NSCoding)?, forIdentifier identifier: String?
  ) -> Bool {
    guard let identifier else { return false }
    do {
      try pass(messageObject, identifier)
    } catch {
      DropInLog.tell(.error, error)
    }
    return false
  }

  /// The message that has come last; nil if there is none, or if this way keeps none.
  public func messageObject(forIdentifier identifier: String?) -> Any? { nil }

  /// Takes a message back, where this way keeps them.
  public func deleteContent(forIdentifier identifier: String?) {}

  /// Takes all messages back, where this way keeps them.
  public func deleteContentForAllMessages() {}

  func pass(_ object: (any NSCoding)?, _ identifier: String) throws {}

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
  override func pass(_ object: (any NSCoding)?, _ identifier: String) throws {
    let value = try StoredMessage.store(object, identifier)
    try change(identifier) { context in
      let before = SessionMessage(context[identifier])?.number ?? 0
      context[identifier] = SessionMessage(number: before + 1, value: value).packed
    }
  }

  /// The message of an identifier that has come last.
  public override func messageObject(forIdentifier identifier: String?) -> Any? {
    guard let identifier,
      let message = SessionMessage(session.receivedApplicationContext[identifier])
    else { return nil }
    return try? StoredMessage.object(message.value, identifier)
  }

  /// Takes the message of an identifier out of the context.
  public override func deleteContent(forIdentifier identifier: String?) {
    guard let identifier else { return }
    attempt { try change(identifier) { $0[identifier] = nil } }
  }

  /// Takes all messages out of the context.
  public override func deleteContentForAllMessages() {
    attempt { try change("all") { $0 = $0.filter { SessionMessage($0.value) == nil } } }
  }

  private func change(_ identifier: String, _ body: (inout [String: Any]) -> Void) throws {
    try Self.changing.withLock { _ in
      var context = session.applicationContext
      body(&context)
      do {
        try session.updateApplicationContext(context)
      } catch {
        throw Self.explain(error, identifier)
      }
    }
  }

  private func attempt(_ body: () throws -> Void) {
    do {
      try body()
    } catch {
      DropInLog.tell(.error, error)
    }
  }
}

/// Passes messages to the other side that runs now, or to nobody, which the log is told.
public final class MMWormholeSessionMessageTransiting: MMWormholeSessionTransiting,
  @unchecked Sendable  // As the class above it.
{
  override func pass(_ object: (any NSCoding)?, _ identifier: String) throws {
    let value = try StoredMessage.store(object, identifier)
    session.sendMessage(
      [identifier: SessionMessage(number: 0, value: value).packed], replyHandler: nil
    ) { error in
      DropInLog.tell(.error, "\(Self.explain(error, identifier))")
    }
  }
}

/// Passes messages that arrive whoever dies meanwhile, all of them, in order; they may be large.
public final class MMWormholeSessionFileTransiting: MMWormholeSessionTransiting,
  @unchecked Sendable  // As the class above it.
{
  override func pass(_ object: (any NSCoding)?, _ identifier: String) throws {
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
