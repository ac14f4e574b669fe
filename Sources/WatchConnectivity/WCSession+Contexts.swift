internal import Foundation
internal import DropIns
internal import PropertyLists
internal import Wormhole

/// States, of which the latest counts.
extension WCSession {
  /// Tells the counterpart a state, in place of one that it has not received yet.
  ///
  /// It is received when the counterpart runs the next time. One that equals the last is not told
  /// again. When this returns it is there, whatever becomes of this process.
  public func updateApplicationContext(_ applicationContext: [String: Any]) throws {
    let (connection, _) = try ready()
    let value = try Payload.take(applicationContext, largest: settings.largestContext)
    do throws(WormholeError) {
      try connection.peer.setContext(value, kind: contextKind, durability: settings.durability)
    } catch {
      // It is told, and a power cut may undo it.
      guard error.code == .notDurable else { throw WCError(error) }
      DropInLog.tell(.warning, error)
    }
  }

  /// What the counterpart was told last, also in an earlier life; empty if nothing, or before the
  /// session was activated.
  public var applicationContext: [String: Any] {
    context { (peer) throws(WormholeError) in try peer.sentContext }
  }

  /// What the counterpart has told last, and the delegate was given; as ``applicationContext``.
  public var receivedApplicationContext: [String: Any] {
    context { (peer) throws(WormholeError) in try peer.receivedContext }
  }

  /// What ``applicationContext`` answers; throws if nobody could be told another, or if this one
  /// cannot be read: whoever changes a part of it must not take that for an empty one.
  package func readApplicationContext() throws -> [String: Any] {
    let (connection, _) = try ready()
    return try Self.content(of: connection.peer.sentContext)
  }

  /// What ``receivedApplicationContext`` answers; throws if it cannot be read.
  package func readReceivedApplicationContext() throws -> [String: Any] {
    guard let connection else { return [:] }
    return try Self.content(of: connection.peer.receivedContext)
  }

  private func context(
    _ find: (Wormhole.Peer) throws(WormholeError) -> Wormhole.Context?
  ) -> [String: Any] {
    guard let connection else { return [:] }
    do throws(WormholeError) {
      return try Self.content(of: find(connection.peer))
    } catch {
      DropInLog.tell(.error, error)
      return [:]
    }
  }

  private static func content(
    of context: Wormhole.Context?
  ) throws(WormholeError) -> [String: Any] {
    try context?.value(as: PropertyListValue.self).foundationDictionary ?? [:]
  }
}
