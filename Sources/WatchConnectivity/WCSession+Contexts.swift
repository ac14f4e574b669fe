internal import Foundation
internal import Wormhole
internal import WormholeDropIns
internal import WormholePropertyLists

/// Contexts: states of which only the latest counts.
extension WCSession {
  /// Sets a context for the counterpart, in place of one that the counterpart has not received yet.
  ///
  /// The counterpart receives the context when it runs the next time. A context that equals the
  /// previous one is not delivered again. When the call returns, the context is stored, even if
  /// this process dies.
  public func updateApplicationContext(_ applicationContext: [String: Any]) throws {
    let (connection, _) = try ready()
    let value = try SessionPayload.take(applicationContext, largest: settings.largestContext)
    do throws(WormholeError) {
      try connection.peer.setContext(value, kind: contextKind, durability: settings.durability)
    } catch {
      // The context is set, and a power cut may undo it.
      guard error.code == .notDurable else { throw WCError(error) }
      DropInLog.tell(.warning, error)
    }
  }

  /// The context that was set last for the counterpart, also in an earlier run; empty if there is
  /// none, or before the session was activated.
  public var applicationContext: [String: Any] {
    context { (peer) throws(WormholeError) in try peer.sentContext }
  }

  /// The context that the counterpart has set last and the delegate has received; empty in the same
  /// cases as ``applicationContext``.
  public var receivedApplicationContext: [String: Any] {
    context { (peer) throws(WormholeError) in try peer.receivedContext }
  }

  /// Returns ``applicationContext``; throws if no new context can be set, or if the current one
  /// cannot be read.
  ///
  /// Code that changes a part of the context must not mistake an unreadable one for an empty one.
  package func readApplicationContext() throws -> [String: Any] {
    let (connection, _) = try ready()
    return try Self.content(of: connection.peer.sentContext)
  }

  /// Returns ``receivedApplicationContext``; throws if the context cannot be read.
  package func readReceivedApplicationContext() throws -> [String: Any] {
    guard let connection else { return [:] }
    return try Self.content(of: connection.peer.receivedContext)
  }

  private func context(
    _ find: (Peer) throws(WormholeError) -> Context?
  ) -> [String: Any] {
    guard let connection else { return [:] }
    // Much code changes a part of the context that this call returns, and sets the whole.
    return SilentCall.attempt { try Self.content(of: find(connection.peer)) } ?? [:]
  }

  private static func content(
    of context: Context?
  ) throws(WormholeError) -> [String: Any] {
    try context?.value(as: PropertyListValue.self).foundationDictionary ?? [:]
  }
}
