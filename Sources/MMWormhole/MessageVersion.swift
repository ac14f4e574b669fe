internal import WormholeContainerStorage

/// The version of a message in the channel that holds the message.
///
/// Each channel counts its own versions: a messenger that replaces another may write to another
/// channel, whose versions are lower.
struct MessageVersion: Sendable {
  /// A channel of one container: two messengers of the same directory have the same channel.
  ///
  /// It holds no container, because a listener knows the channels of all its messengers.
  struct ChannelIdentity: Hashable, Sendable {
    /// The identifier of the container, which a copy of the container has, too.
    let container: String
    /// The directory of the container: a copy has another one, and counts on its own.
    let directory: FileIdentity
    /// The name of the channel.
    let name: String
  }

  let source: ChannelIdentity
  let number: Int
}

extension MessageVersion.ChannelIdentity {
  init(_ container: Container, name: String) {
    self.init(container: container.id, directory: container.identity, name: name)
  }
}
