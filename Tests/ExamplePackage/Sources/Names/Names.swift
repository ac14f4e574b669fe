import Communicator
import Foundation
import Wormhole

import enum Communicator.Reachability
import struct Communicator.Context
import struct Communicator.ImmediateMessage

/// The names that two imported modules share.
///
/// The declarations that are imported by name come first, and the other module's need its name.
public struct Names {
  /// A context of a member.
  public var context: Wormhole.Context?
  /// A context of the pair.
  public var pairsContext: Context?
  /// A message to a running process.
  public var immediate: Wormhole.ImmediateMessage?
  /// A message of the pair.
  public var pairsImmediate: ImmediateMessage?
  /// The reachability of a member.
  public var reachability = Wormhole.Reachability.neverJoined
  /// The reachability of the counterpart.
  public var pairsReachability = Reachability.notReachable

  /// The names of the module beside those of Foundation.
  public func lock(_ container: SharedContainer, _ member: Member, _ url: URL) throws -> Lock {
    let options = Options()
    let peer: Peer = member.peer(url.lastPathComponent)
    let message: Sent = try peer.send(Date(), SendOptions())
    try container.notice(message.id).post()
    _ = (options.durability, Wormhole.Message.self, Wormhole.Peer.self)
    return container.lock(peer.name)
  }
}
