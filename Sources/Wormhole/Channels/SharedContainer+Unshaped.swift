internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists

/// The content of a channel at one moment, in any shape.
package struct UntypedSnapshot: Sendable {
  package let channel: String
  package let metadata: Metadata
  /// Nil if the channel was cleared.
  package let value: PropertyListValue?
}

extension UntypedSnapshot {
  package init(_ snapshot: Snapshot<PropertyListValue>) {
    channel = snapshot.channel
    metadata = snapshot.metadata
    value = snapshot.value
  }
}

extension SharedContainer {
  /// The same as ``Channel/latest`` of a channel of property lists, for programs that start for a
  /// single value.
  ///
  /// Setting up `Codable` and its generic types takes a program longer than reading the file, so
  /// the usual form is decoded by hand. All other forms take the usual path.
  package func unshaped(_ name: String) throws(WormholeError) -> UntypedSnapshot? {
    let content = try storage.slot(.channels, name).read()
    let limits = options.limits
    if case .value(let bytes, let isRecovered) = content,
      case .dictionary(let entries)? = try? BinaryPropertyList.decode(bytes, limits: limits),
      case .integer(let version)? = entries["version"], version > 0, version < .max,
      case .date(let sent)? = entries["sent"], case .string(let from)? = entries["from"],
      entries["home"] == nil, entries["until"] == nil
    {
      let value = entries["value"]
      let metadata = Metadata(
        version: Int(version), sent: sent, from: from, isCleared: value == nil,
        isRecovered: isRecovered)
      return UntypedSnapshot(channel: name, metadata: metadata, value: value)
    }
    return try channel(name, of: PropertyListValue.self).latest.map(UntypedSnapshot.init)
  }
}
