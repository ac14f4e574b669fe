internal import SharedContainer
internal import Syscalls

/// `members/<name>/progress`: how far the batches that are in hand have come, so that after a death
/// what was done does not come again.
///
/// The file is memory of the process that receives, and of nobody else: what it stores there is
/// there for the next one even if it dies at once. Each incarnation makes a file of its own and
/// takes over what the last one left. It has 256 records of 128 bytes:
///
///      0  the stamp of the batch's name, 20 digits
///     20  a hash of the whole name, 8 bytes
///     32  64 slots, one for each message: see ``BatchSlots``
///
/// Its first byte is written last and erased first, so that a record that has one has a name and
/// slots that belong together.
final class Progress: Sendable {
  static let recordSize = 128
  static let recordCount = 256
  static let size = recordSize * recordCount
  static let fileName = MemberDirectory.progressName
  private static let keySize = 28
  private static let slotsOffset = 32
  static let slotCount = BatchSlots.largest

  private let mapping: Mapping
  /// Stores nothing; for tests.
  private let isMute: Bool
  private let free: Monitor<[Int]>
  /// What the last incarnation has left.
  private let inherited: Monitor<[[UInt8]: (record: Int, slots: [UInt8])]>

  init(_ home: MemberDirectory, isMute: Bool) throws(WormholeError) {
    self.isMute = isMute
    let old = try home.readProgress(Self.fileName, size: Self.size)
    var records: [[UInt8]: (record: Int, slots: [UInt8])] = [:]
    for record in 0..<Self.recordCount {
      let start = record * Self.recordSize
      guard old.count >= start + Self.recordSize, old[start] != 0 else { continue }
      let key = Array(old[start..<(start + Self.keySize)])
      let slots = start + Self.slotsOffset
      records[key] = (record, Array(old[slots..<(slots + Self.slotCount)]))
    }
    let fresh = old.count == Self.size ? old : [UInt8](repeating: 0, count: Self.size)
    mapping = try home.mapProgress(Self.fileName, fresh)
    let taken = Set(records.values.map(\.record))
    free = Monitor((0..<Self.recordCount).filter { !taken.contains($0) })
    inherited = Monitor(records)
  }

  private static func key(_ name: MessageName) -> [UInt8] {
    var text = name.text
    return text.withUTF8 { bytes in
      // FNV-1a: the stamp tells nearly all names apart, and this the rest.
      let hash = bytes.reduce(UInt64(0xcbf2_9ce4_8422_2325)) {
        ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3
      }
      return Array(bytes[2..<22]) + withUnsafeBytes(of: hash.littleEndian) { Array($0) }
    }
  }

  /// The record of a batch; the one that the last incarnation had begun, or a new one.
  ///
  /// - Returns: nil if all are taken.
  func open(_ name: MessageName, count: Int) -> (record: Int, slots: BatchSlots)? {
    let key = Self.key(name)
    let begun = inherited.withLock { $0.isEmpty ? nil : $0.removeValue(forKey: key) }
    if let (record, slots) = begun {
      return (record, BatchSlots(slots.prefix(count)))
    }
    guard let record = free.withLock({ $0.popLast() }) else { return nil }
    let start = record * Self.recordSize
    key.withUnsafeBytes { key in
      let rest = UnsafeRawBufferPointer(rebasing: key[1...])
      mapping.clear(at: start + Self.slotsOffset, count: Self.slotCount)
      mapping.store(rest, at: start + 1)
      mapping[start] = key[0]
    }
    return (record, BatchSlots(count: count))
  }

  /// Whether a batch that was claimed by the last incarnation had come so far that it had a record.
  func knows(_ name: MessageName) -> Bool {
    inherited.withLock { $0[Self.key(name)] != nil }
  }

  func store(_ slot: UInt8, _ index: Int, in record: Int) {
    guard !isMute else { return }
    mapping[record * Self.recordSize + Self.slotsOffset + index] = slot
  }

  /// The batch has come to its end.
  func close(_ record: Int) {
    mapping[record * Self.recordSize] = 0
    free.withLock { $0.append(record) }
  }

  /// Erases what the last incarnation left of batches that are no longer in hand.
  func forgetInherited(but names: [MessageName]) {
    let keys = Set(names.map(Self.key))
    let left = inherited.withLock { inherited in
      let left = inherited.filter { !keys.contains($0.key) }
      for key in left.keys { inherited[key] = nil }
      return left.values.map(\.record)
    }
    for record in left { close(record) }
  }
}
