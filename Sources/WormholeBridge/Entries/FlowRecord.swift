internal import Wormhole
package import WormholePropertyLists

/// Binds consecutive numbers of a flow to messages and outcomes, before any of them is touched.
///
/// A record appears complete, by one rename, and never changes. So a number has one meaning for
/// ever, whichever process continues.
struct FlowRecord: Equatable {
  /// 16 hexadecimal digits that name the flow.
  let flow: String
  let first: Int
  /// The hash of all entries before the first one.
  let before: EntryChain
  let entries: [FlowEntry]

  var last: Int { first + entries.count - 1 }

  /// The largest number of entries.
  static let mostEntries = 128

  /// The hash up to a number, which must be one before the first, or one of the record's.
  func chain(upTo number: Int) -> EntryChain {
    entries.prefix(number - first + 1).reduce(before) { $0.followed(by: $1) }
  }

  subscript(number: Int) -> FlowEntry { entries[number - first] }

  private enum Key {
    static let (flow, first, before, entries) = ("flow", "first", "before", "entries")
  }

  init(flow: String, first: Int, before: EntryChain, entries: [FlowEntry]) {
    (self.flow, self.first, self.before, self.entries) = (flow, first, before, entries)
  }

  var propertyList: PropertyListValue {
    [
      Key.flow: .string(flow), Key.first: .integer(Int64(first)), Key.before: .string(before.text),
      Key.entries: .array(entries.map { .dictionary($0.propertyList(isRecord: true)) }),
    ]
  }

  init?(_ list: PropertyListValue) {
    guard let flow = list[Key.flow]?.stringValue, let first = list[Key.first]?.intValue,
      (1...Int.lastEntry).contains(first),
      let before = list[Key.before]?.stringValue.flatMap({ EntryChain($0) }),
      let entries = list[Key.entries]?.arrayValue
    else { return nil }
    let found = entries.compactMap { FlowEntry($0) }
    guard !found.isEmpty, found.count == entries.count else { return nil }
    self.init(flow: flow, first: first, before: before, entries: found)
  }
}

/// How far a flow has been settled on the machine that sends it, in `flow.plist`.
struct FlowState: Equatable {
  let flow: String
  /// The first number that no record of the past has had.
  let next: Int
  /// The hash of all entries before it.
  let chain: EntryChain
  /// The large messages of which only some pieces have had numbers, by receiver.
  let transfers: [Carrier.Resident: FlowTransfer]

  private enum Key {
    static let (flow, next, hash, transfers) = ("flow", "next", "hash", "transfers")
  }

  init(
    flow: String, next: Int, chain: EntryChain, transfers: [Carrier.Resident: FlowTransfer] = [:]
  ) {
    (self.flow, self.next, self.chain, self.transfers) = (flow, next, chain, transfers)
  }

  var propertyList: PropertyListValue {
    var list: [String: PropertyListValue] = [
      Key.flow: .string(flow), Key.next: .integer(Int64(next)), Key.hash: .string(chain.text),
    ]
    if !transfers.isEmpty {
      list[Key.transfers] = .array(
        transfers.sorted { $0.value.name < $1.value.name }.map(\.value.propertyList))
    }
    return .dictionary(list)
  }

  init?(_ list: PropertyListValue) {
    guard let flow = list[Key.flow]?.stringValue, let next = list[Key.next]?.intValue,
      (1...Int.lastEntry).contains(next),
      let chain = list[Key.hash]?.stringValue.flatMap({ EntryChain($0) })
    else { return nil }
    let entries = list[Key.transfers]?.arrayValue ?? []
    let transfers = entries.compactMap { FlowTransfer($0) }
    guard transfers.count == entries.count else { return nil }
    self.init(
      flow: flow, next: next, chain: chain,
      transfers: Dictionary(transfers.map { ($0.receiver, $0) }) { $1 })
  }
}

/// A place in a flow: everything up to the number has been stored by the other machine.
package struct FlowPosition: Hashable, Sendable {
  package let flow: String
  package let number: Int
  package let chain: EntryChain

  private enum Key { static let (flow, number, hash) = ("flow", "number", "hash") }

  package init(flow: String, number: Int, chain: EntryChain) {
    (self.flow, self.number, self.chain) = (flow, number, chain)
  }

  package var propertyList: [String: PropertyListValue] {
    [
      Key.flow: .string(flow), Key.number: .integer(Int64(number)), Key.hash: .string(chain.text),
    ]
  }

  package init?(_ list: PropertyListValue) {
    guard let flow = list[Key.flow]?.stringValue, let number = list[Key.number]?.intValue,
      number >= 0, let chain = list[Key.hash]?.stringValue.flatMap({ EntryChain($0) })
    else { return nil }
    self.init(flow: flow, number: number, chain: chain)
  }
}
