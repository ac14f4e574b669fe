/// A list that only grows, for the writer's own use.
///
/// An array would also do, but would check every access for bounds, uniqueness and, inside a class,
/// exclusivity: half of the time for encoding a message. The owner computes all indices itself,
/// never copies the list, and frees it.
struct GrowingList<Element: BitwiseCopyable> {
  private(set) var base: UnsafeMutablePointer<Element>
  private(set) var count = 0
  private var capacity: Int
  /// Whether the list has moved to memory of its own.
  private var hasGrown = false

  /// Starts in memory of the owner's, which must live as long as the list.
  init(in memory: UnsafeMutableRawBufferPointer) {
    base = memory.baseAddress!.assumingMemoryBound(to: Element.self)
    capacity = memory.count / MemoryLayout<Element>.stride
  }

  func free() { if hasGrown { base.deallocate() } }

  @inline(__always)
  subscript(index: Int) -> Element {
    unsafeAddress {
      assert(index >= 0 && index < count)
      return UnsafePointer(base + index)
    }
    nonmutating unsafeMutableAddress {
      assert(index >= 0 && index < count)
      return base + index
    }
  }

  @inline(__always)
  mutating func append(_ element: Element) {
    if count == capacity { grow(by: 1) }
    (base + count).initialize(to: element)
    count += 1
  }

  @inline(never)
  private mutating func grow(by more: Int) {
    capacity = max(2 * capacity, count + more)
    let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity)
    larger.moveInitialize(from: base, count: count)
    free()
    base = larger
    hasGrown = true
  }

  /// Reserves memory for more elements, to avoid growing for each element.
  mutating func reserve(_ more: Int) {
    if capacity - count < more { grow(by: more) }
  }

  /// Adds space for more elements; the caller initializes the memory at once.
  @inline(__always)
  mutating func extend(by more: Int) -> UnsafeMutablePointer<Element> {
    if capacity - count < more { grow(by: more) }
    defer { count += more }
    return base + count
  }
}

extension GrowingList<UInt8> {
  var raw: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

  @inline(__always)
  mutating func append(contentsOf bytes: RawSpan) {
    guard !bytes.isEmpty else { return }
    let target = UnsafeMutableRawPointer(extend(by: bytes.byteCount))
    bytes.withUnsafeBytes { target.copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
  }

  /// Appends a number big-endian.
  @inline(__always)
  mutating func append(number: some FixedWidthInteger & BitwiseCopyable) {
    let target = UnsafeMutableRawPointer(extend(by: number.bitWidth / 8))
    target.storeBytes(of: number.bigEndian, as: type(of: number))
  }
}
