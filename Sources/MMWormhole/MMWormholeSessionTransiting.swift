public import Foundation
internal import WatchConnectivity
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholeDropIns
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A messenger that passes messages to the peer of a watch session.
///
/// Both sides activate the session with ``MMWormholeSession/activateListening()``, and listen
/// there. A process does not receive its own messages. As in the original's header the classes are
/// subclasses of ``MMWormholeFileTransiting``, and may be subclassed; they store no files.
open class MMWormholeSessionTransiting: MMWormholeFileTransiting {
  let session = WCSession.default
  /// Lets only one thread at a time change the context.
  static let changing = Monitor(0)

  override var watchesChannels: Bool { false }

  convenience init() { self.init(applicationGroupIdentifier: nil) }

  /// Passes a message; always returns false, because the session notifies the peer.
  open override func writeMessageObject(
    _ messageObject: (any NSCoding)?, forIdentifier identifier: String
  ) -> Bool {
    attempt { try pass(messageObject, identifier) { { DropInLog.tell(.error, $0) } } }
    return false
  }

  override func pass(
    _ object: (any NSCoding)?, _ identifier: String,
    failure: () -> @Sendable (any Error) -> Void
  ) throws {}

  override func message(_ identifier: String) throws -> Any? { nil }
  override func clear(_ identifier: String) throws -> MessageVersion? { nil }
  override func clearAll(_ cleared: (String, MessageVersion?) -> Void) throws {}

  static func explain(
    _ error: any Error, _ identifier: String, _ operation: String = "pass message"
  ) -> WormholeError {
    WormholeError(
      .rejected, operation, identifier, because: (error as NSError).localizedDescription)
  }
}

/// Passes messages in the application context: the last message of each identifier arrives, even if
/// the peer does not run now.
open class MMWormholeSessionContextTransiting: MMWormholeSessionTransiting {
  override func pass(
    _ object: (any NSCoding)?, _ identifier: String,
    failure: () -> @Sendable (any Error) -> Void
  ) throws {
    let value = try StoredMessage.store(object, identifier)
    // The number differs from every earlier number, which the peer may know, even after a clear,
    // and even if a program has written the greatest number.
    let now = Int(Date().timeIntervalSince1970 * 1_000_000)
    try change("pass message", identifier) { context in
      let before = SessionMessage(context[identifier])?.number ?? 0
      context[identifier] = SessionMessage(number: max(before &+ 1, now), value: value).packed
    }
  }

  override func message(_ identifier: String) throws -> Any? {
    let context = try session.readReceivedApplicationContext()
    guard let message = SessionMessage(context[identifier]) else { return nil }
    return try StoredMessage.object(message.value, identifier)
  }

  override func clear(_ identifier: String) throws -> MessageVersion? {
    try change("clear message", identifier) { $0[identifier] = nil }
    return nil
  }

  override func clearAll(_ cleared: (String, MessageVersion?) -> Void) throws {
    try change("clear messages", "all") { $0 = $0.filter { SessionMessage($0.value) == nil } }
  }

  private func change(
    _ operation: String, _ identifier: String, _ body: (inout [String: Any]) -> Void
  ) throws {
    try Self.changing.withLock { _ in
      do {
        // An unreadable context does not count as empty: all messages in it would be lost.
        var context = try session.readApplicationContext()
        body(&context)
        try session.updateApplicationContext(context)
      } catch {
        throw Self.explain(error, identifier, operation)
      }
    }
  }
}

/// Passes messages to the peer if it runs now; otherwise the message is lost, and the log reports
/// it.
open class MMWormholeSessionMessageTransiting: MMWormholeSessionTransiting {
  override func pass(
    _ object: (any NSCoding)?, _ identifier: String,
    failure: () -> @Sendable (any Error) -> Void
  ) throws {
    let value = try StoredMessage.store(object, identifier)
    let failure = failure()
    session.sendMessage(
      [identifier: SessionMessage(number: 0, value: value).packed], replyHandler: nil
    ) { error in
      failure(Self.explain(error, identifier))
    }
  }
}

/// Passes messages that all arrive in order, even if a process dies in between; they may be large.
open class MMWormholeSessionFileTransiting: MMWormholeSessionTransiting {
  override func pass(
    _ object: (any NSCoding)?, _ identifier: String,
    failure: () -> @Sendable (any Error) -> Void
  ) throws {
    let value = try StoredMessage.store(object, identifier)
    _ = session.transferBlob([identifier: SessionMessage(number: 0, value: value).packed])
  }
}

/// A message in transit: with a number, so that an equal message makes a different context.
struct SessionMessage {
  private static let mark = "MMWormhole.message"

  let number: Int
  let value: PropertyListValue

  var packed: [String: Any] { [Self.mark: value.foundation, "number": number] }
}

extension SessionMessage {
  /// Unpacks a message; nil if the value is not a message.
  init?(_ packed: Any?) {
    guard let packed = packed as? [String: Any], let inside = packed[Self.mark],
      let number = packed["number"] as? Int, let value = try? PropertyListValue(any: inside)
    else { return nil }
    self.init(number: number, value: value)
  }
}
