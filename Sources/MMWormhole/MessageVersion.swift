/// The version of a message in the channel that holds the message.
///
/// Each channel counts its own versions: a messenger that replaces another may write to another
/// channel, whose versions are lower.
struct MessageVersion: Sendable {
  /// A channel of one container: two messengers of the same directory have the same channel.
  struct Source: Hashable, Sendable {
    let container: any AnyObject & Sendable
    /// The name of the channel.
    let name: String

    static func == (one: Source, other: Source) -> Bool {
      one.container === other.container && one.name == other.name
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(ObjectIdentifier(container))
      hasher.combine(name)
    }
  }

  let source: Source
  let number: Int
}
