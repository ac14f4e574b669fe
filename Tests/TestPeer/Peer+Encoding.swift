import WormholePropertyLists

/// Jobs that encode and decode property lists.
extension Peer {
  static func encodeOften(keys: Int, times: Int) throws {
    let entries = (0..<keys).map { ("key \($0)", PropertyListValue.boolean(true)) }
    let value = PropertyListValue.dictionary(Dictionary(uniqueKeysWithValues: entries))
    func encode(_ times: Int) throws {
      for _ in 0..<times { _ = try BinaryPropertyList.encode(value) }
    }
    // The allocator takes its memory from the system.
    try encode(10)
    let before = try mostMemory()
    try encode(times)
    try say("\(try mostMemory() - before)")
  }
}
