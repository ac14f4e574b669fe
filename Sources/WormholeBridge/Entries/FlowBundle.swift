internal import FoundationEssentials
internal import WormholePropertyLists

/// Consecutive entries of a flow, as they travel: with the files of the messages.
package struct FlowBundle: Equatable, Sendable {
  package let flow: String
  /// The start of the sending bridge, as the fencing token of the flow.
  package let generation: Int
  package let first: Int
  package let before: EntryChain
  /// The clock of the sending machine, in nanoseconds since 1970.
  package let now: Int64
  package let entries: [FlowEntry]
  /// The file of each message and the bytes of each piece; nil for all that is gone or else.
  ///
  /// The bytes of a message that has travelled in pieces are empty.
  package let bodies: [[UInt8]?]
  /// The position up to which the sending bridge has read the group's records; 0 from an earlier
  /// version.
  ///
  /// A bundle that is published again states the position of that time.
  package var records = 0

  package var last: Int { first + entries.count - 1 }

  private enum Key {
    static let (flow, generation, first, before) = ("flow", "generation", "first", "before")
    static let (now, entries, body) = ("now", "entries", "body")
    static let records = "records"
  }

  package func encoded() -> [UInt8]? {
    let entries = zip(entries, bodies).map { entry, body in
      var list = entry.propertyList(isRecord: false)
      if let body { list[Key.body] = .data(Data(body)) }
      return PropertyListValue.dictionary(list)
    }
    var list: [String: PropertyListValue] = [
      Key.flow: .string(flow), Key.generation: .integer(Int64(generation)),
      Key.first: .integer(Int64(first)), Key.before: .string(before.text),
      Key.now: .integer(now), Key.entries: .array(entries),
    ]
    if records > 0 { list[Key.records] = .integer(Int64(records)) }
    return try? BinaryEncoder().encode(PropertyListValue.dictionary(list))
  }
}

extension FlowBundle {
  /// Nil for bytes in another form: other machines and the servers may deliver anything.
  package init?(_ bytes: [UInt8]) {
    guard let list = try? BinaryPropertyList.decode(bytes),
      let flow = list[Key.flow]?.stringValue, flow.utf8.count == 16,
      let generation = list[Key.generation]?.intValue, let first = list[Key.first]?.intValue,
      first > 0, let before = list[Key.before]?.stringValue.flatMap({ EntryChain($0) }),
      let now = list[Key.now]?.intValue, let entries = list[Key.entries]?.arrayValue
    else { return nil }
    let found = entries.compactMap { FlowEntry($0) }
    guard !found.isEmpty, found.count == entries.count, first <= Int.lastEntry else { return nil }
    self.init(
      flow: flow, generation: generation, first: first, before: before, now: Int64(now),
      entries: found, bodies: entries.map { $0[Key.body]?.dataValue.map { Array($0) } },
      records: list[Key.records]?.intValue ?? 0)
  }
}
