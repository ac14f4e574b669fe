/// FNV-1a of 64 bits, as every program computes it that reads or writes names with hashes.
package enum FowlerHash {
  package static let start: UInt64 = 0xcbf2_9ce4_8422_2325

  /// - Parameter hash: the hash of the bytes before these.
  package static func hash(
    _ bytes: some Sequence<UInt8>, after hash: UInt64 = FowlerHash.start
  ) -> UInt64 {
    bytes.reduce(hash) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
  }
}
