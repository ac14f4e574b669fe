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

  private func context(
    _ find: (Wormhole.Peer) throws(WormholeError) -> Wormhole.Context?
  ) -> [String: Any] {
    guard let connection else { return [:] }
    do throws(WormholeError) {
      let value = try find(connection.peer)?.value(as: PropertyListValue.self)
      return value?.foundationDictionary ?? [:]
    } catch {
      DropInLog.tell(.error, error)
      return [:]
    }
  }
}
