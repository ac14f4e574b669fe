internal import WormholeContainerStorage

/// The hash of all entries of a flow up to a number.
///
/// A number and the hash up to it reveal a duplicate, a loss, and an entry that a copy of the
/// machine has sent under the same number.
package struct EntryChain: Hashable, Sendable {
  package let hash: UInt64

  /// The hash before the first entry.
  package static let start = EntryChain(hash: FowlerHash.hash([]))

  init(hash: UInt64) { self.hash = hash }

  /// Nil for a text in another form.
  init?(_ text: String) {
    guard text.utf8.count == 16, let hash = UInt64(text, radix: 16) else { return nil }
    self.hash = hash
  }

  /// 16 hexadecimal digits.
  var text: String { hash.digits }

  func followed(by entry: FlowEntry) -> EntryChain {
    EntryChain(hash: FowlerHash.hash(entry.identity.utf8, after: hash))
  }
}

extension Int {
  /// The greatest number of an entry: no bridge counts so far, and further numbers can be computed.
  static let lastEntry = 1 << 62

  /// A file's name for a number of a flow.
  var fileName: String { UInt64(self).digits }

  /// The name of a file about an entry that outlasts the flow.
  ///
  /// The next flow of the same machine has all numbers again. Another machine chooses the text that
  /// names a flow, so the text is no part of a file's name.
  func fileName(of flow: String) -> String {
    "\(fileName).\(FowlerHash.hash(flow.utf8).digits)"
  }

  /// Nil for a text that is no such name.
  init?(fileName: String) {
    guard fileName.utf8.count == 16, fileName == fileName.lowercased(),
      let number = UInt64(fileName, radix: 16), number <= UInt64(Int.max)
    else { return nil }
    self = Int(number)
  }
}
