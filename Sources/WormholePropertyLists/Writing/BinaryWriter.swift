import FoundationEssentials

/// A writer of the objects of a binary property list, in any order.
///
/// Leaves go straight into the file. The content of a container is stored as a chain of links until
/// the end, when the number of objects, and with it the size of a reference, is known; chains of
/// containers that are open at the same time do not disturb each other.
final class BinaryWriter {
  let limits: PropertyListLimits
  // No function here calls out while it changes a field, so the runtime need not look for overlaps:
  // `@exclusivity(unchecked)` halves the time for a small value.
  @exclusivity(unchecked) var bytes: GrowingList<UInt8>
  @exclusivity(unchecked) var offsets: GrowingList<Int>
  @exclusivity(unchecked) var links: GrowingList<ElementLink>
  @exclusivity(unchecked) var containers: GrowingList<ElementContainer>
  @exclusivity(unchecked) var keys = KeyTable()
  /// The bytes that repeated keys add to the size counted by a reader.
  @exclusivity(unchecked) var repeatedBytes = 0
  /// A failure inside a call that cannot throw, stored for the next call that can.
  @exclusivity(unchecked) var failure: PropertyListError?
  var userInfo = [CodingUserInfoKey: any Sendable]()
  /// The initial memory of all four lists: one allocation instead of four, because most files are
  /// small.
  private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 1408, alignment: 16)

  /// The link that leads to the top object.
  static let top: UInt32 = 0

  /// A position that takes a value.
  struct ElementLink: BitwiseCopyable {
    static let none = UInt32.max
    /// The value of a removed link.
    static let removed = UInt32.max - 1
    /// Set if the value is the index of a container, not the number of an object: containers are
    /// numbered after the leaves, because the file has the containers after the leaves.
    static let container: UInt32 = 1 << 31

    /// The object of the key, if the owner is a dictionary.
    var key: UInt32
    var value = ElementLink.none
    /// The next link of the same owner.
    var next = ElementLink.none
    /// The index of the container that the link belongs to.
    var owner: UInt32
  }

  struct ElementContainer: BitwiseCopyable {
    var link: UInt32
    var isDictionary: Bool
    var depth: Int
    var count = 0
    var first = ElementLink.none
    var last = ElementLink.none
  }

  init(limits: PropertyListLimits) {
    self.limits = limits
    bytes = GrowingList(in: UnsafeMutableRawBufferPointer(rebasing: memory[..<512]))
    offsets = GrowingList(in: UnsafeMutableRawBufferPointer(rebasing: memory[512..<768]))
    links = GrowingList(in: UnsafeMutableRawBufferPointer(rebasing: memory[768..<1280]))
    containers = GrowingList(in: UnsafeMutableRawBufferPointer(rebasing: memory[1280...]))
    bytes.append(number: BinaryFormat.magic)
    links.append(ElementLink(key: 0, owner: ElementLink.none))
  }

  deinit {
    bytes.free()
    offsets.free()
    links.free()
    containers.free()
    keys.free()
    memory.deallocate()
  }

  /// Adds a link to the end of a container.
  func addLink(to container: UInt32, key: UInt32 = 0) -> UInt32 {
    let link = UInt32(links.count)
    links.append(ElementLink(key: key, owner: container))
    let index = Int(container)
    let last = containers[index].last
    if last == ElementLink.none {
      containers[index].first = link
    } else {
      links[Int(last)].next = link
    }
    containers[index].last = link
    containers[index].count += 1
    return link
  }

  /// Removes a link, as if the link had never been added.
  func remove(_ link: UInt32) {
    let place = Int(link)
    guard links[place].value != ElementLink.removed else { return }
    links[place].value = ElementLink.removed
    if links[place].owner != ElementLink.none { containers[Int(links[place].owner)].count -= 1 }
  }

  /// Stores an empty container in a link.
  func addContainer(isDictionary: Bool, at link: UInt32) -> UInt32 {
    let owner = links[Int(link)].owner
    let depth = owner == ElementLink.none ? 1 : containers[Int(owner)].depth + 1
    if depth > limits.depth, failure == nil { failure = .limit(.depth, limits) }
    let index = UInt32(containers.count)
    containers.append(ElementContainer(link: link, isDictionary: isDictionary, depth: depth))
    links[Int(link)].value = index | ElementLink.container
    return index
  }

  /// Returns the number of a new object, which begins at the end of the written bytes.
  @inline(__always)
  func begin() -> UInt32 {
    offsets.append(bytes.count)
    return UInt32(truncatingIfNeeded: offsets.count - 1)
  }

  var objectCount: Int { offsets.count + containers.count }

  /// Throws as soon as a limit is exceeded, so that an endless value does not fill the memory.
  @inline(__always)
  func check() throws(PropertyListError) {
    if let failure { throw failure }
    guard objectCount <= limits.objects else { throw .limit(.objects, limits) }
    guard bytes.count <= limits.bytes else { throw .limit(.bytes, limits) }
  }
}
