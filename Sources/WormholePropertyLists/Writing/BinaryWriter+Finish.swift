extension BinaryWriter {
  /// Writes the containers, the offsets and the trailer, and returns the file.
  func finish() throws(PropertyListError) -> [UInt8] {
    try check()
    resolveEmptyPlaces()
    try check()
    let leaves = UInt32(offsets.count)
    let referenceSize = Self.width(of: objectCount - 1)
    var marks: [UInt32] = []
    var reached = 1
    for index in 0..<containers.count {
      if containers[index].isDictionary { dropRepeatedKeys(of: index, &marks) }
      try write(
        containers[index], leaves: leaves, referenceSize: referenceSize, reached: &reached)
    }
    guard reached <= limits.reached else { throw .limit(.reached, limits) }
    guard bytes.count - BinaryFormat.magicLength + repeatedBytes <= limits.expandedBytes else {
      throw .limit(.expandedBytes, limits)
    }
    writeTrailer(top: object(links[0].value, leaves), referenceSize: referenceSize)
    guard bytes.count <= limits.bytes else { throw .limit(.bytes, limits) }
    return [UInt8](bytes.raw)
  }

  /// A link without a value becomes an empty dictionary, as with Foundation.
  private func resolveEmptyPlaces() {
    for link in 0..<links.count where links[link].value == ElementLink.none {
      _ = addContainer(isDictionary: true, at: UInt32(link))
    }
  }

  /// Removes repeated keys: of several values for the same key the last counts.
  private func dropRepeatedKeys(of index: Int, _ marks: inout [UInt32]) {
    let container = containers[index]
    guard container.count > Self.few || hasRepeatedKey(container) else { return }
    if marks.isEmpty { marks = Array(repeating: ElementLink.none, count: offsets.count) }
    var link = container.first
    while link != ElementLink.none {
      if links[Int(link)].value != ElementLink.removed {
        let key = Int(links[Int(link)].key)
        let earlier = marks[key]
        if earlier != ElementLink.none, links[Int(earlier)].owner == UInt32(index) {
          remove(earlier)
        }
        marks[key] = link
      }
      link = links[Int(link)].next
    }
  }

  /// Up to this number of links, each link is compared with each.
  private static let few = 8

  private func hasRepeatedKey(_ container: ElementContainer) -> Bool {
    var link = container.first
    while link != ElementLink.none {
      let key = links[Int(link)].key
      link = links[Int(link)].next
      var later = link
      while later != ElementLink.none {
        if links[Int(later)].key == key { return true }
        later = links[Int(later)].next
      }
    }
    return false
  }

  private func write(
    _ container: ElementContainer, leaves: UInt32, referenceSize: Int, reached: inout Int
  ) throws(PropertyListError) {
    _ = begin()
    var count = 0
    var link = container.first
    while link != ElementLink.none {
      if links[Int(link)].value != ElementLink.removed { count += 1 }
      link = links[Int(link)].next
    }
    appendHead(container.isDictionary ? .dictionary : .array, count: count)
    reached += container.isDictionary ? 2 * count : count
    if container.isDictionary {
      appendReferences(of: container, size: referenceSize) { $0.key }
    }
    appendReferences(of: container, size: referenceSize) { object($0.value, leaves) }
    guard bytes.count <= limits.bytes else { throw .limit(.bytes, limits) }
  }

  @inline(__always)
  private func appendReferences(
    of container: ElementContainer, size: Int, _ reference: (ElementLink) -> UInt32
  ) {
    var next = container.first
    while next != ElementLink.none {
      let link = links[Int(next)]
      if link.value != ElementLink.removed { append(Int(reference(link)), width: size) }
      next = link.next
    }
  }

  @inline(__always)
  private func object(_ value: UInt32, _ leaves: UInt32) -> UInt32 {
    value & ElementLink.container == 0 ? value : leaves + (value & ~ElementLink.container)
  }

  private func writeTrailer(top: UInt32, referenceSize: Int) {
    let table = bytes.count
    let offsetSize = Self.width(of: table)
    for index in 0..<offsets.count { append(offsets[index], width: offsetSize) }
    let seal = bytes.count
    for _ in 0..<Seal.length { bytes.append(0) }
    bytes.append(UInt8(offsetSize))
    bytes.append(UInt8(referenceSize))
    bytes.append(number: UInt64(offsets.count))
    bytes.append(number: UInt64(top))
    bytes.append(number: UInt64(table))
    let value = Seal.make(for: bytes.raw.bytes)
    for index in 0..<Seal.length {
      bytes[seal + index] = UInt8(truncatingIfNeeded: value >> (40 - 8 * index))
    }
  }

  @inline(__always)
  private func append(_ value: Int, width: Int) {
    switch width {
    case 1: bytes.append(UInt8(truncatingIfNeeded: value))
    case 2: bytes.append(number: UInt16(truncatingIfNeeded: value))
    case 4: bytes.append(number: UInt32(truncatingIfNeeded: value))
    default: bytes.append(number: UInt64(truncatingIfNeeded: value))
    }
  }

  static func width(of largest: Int) -> Int {
    switch largest {
    case ...0xFF: 1
    case ...0xFFFF: 2
    case ...0xFFFF_FFFF: 4
    default: 8
    }
  }
}
