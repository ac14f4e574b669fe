internal import WormholeContainerStorage
internal import WormholeSyscalls

/// `members/<name>/progress`: the progress of claimed batches, so that messages handled before a
/// crash are not redelivered.
///
/// Only the receiving process writes to the file. Each store is visible to the next process, even
/// if this process dies at once. Each incarnation makes a file of its own and takes over the
/// records of its predecessor. The file has pages of 512 records of 128 bytes, one page at first,
/// and more when needed:
///
///      0  the stamp of the batch's name, 20 digits
///     20  a hash of the whole name, 8 bytes
///     32  64 slots, one for each message: see ``BatchSlots``
///
/// A record's first byte is written last and erased first. If a record has a first byte, its name
/// and its slots therefore belong together.
///
/// If no space is left for the file, as on a full disk, batches are received without a record.
final class BatchProgress: Sendable {
  static let recordSize = 128
  static let recordsInPage = 512
  static let pageSize = recordSize * recordsInPage
  /// The largest number of pages, in writing and in reading.
  static let largestPageCount = 128
  static let fileName = MemberDirectory.progressName
  private static let keySize = 28
  private static let slotsOffset = 32
  static let slotCount = BatchSlots.largest

  /// The location of one batch's progress.
  struct Record: Sendable {
    fileprivate let page: FilePage
    fileprivate let start: Int
    /// Whether nothing is stored; for tests.
    fileprivate let isMute: Bool

    @inline(__always)
    func store(_ slots: borrowing BatchSlots, _ indices: ClosedRange<Int>) {
      guard !isMute else { return }
      let place = start + BatchProgress.slotsOffset + indices.lowerBound
      slots.withBytes(indices) { page.store($0, at: place) }
    }

    fileprivate func write(_ key: [UInt8]) {
      let gap = BatchProgress.slotsOffset - key.count
      let rest = key[1...] + [UInt8](repeating: 0, count: gap + BatchProgress.slotCount)
      page.store(rest.span.bytes, at: start + 1)
      page.store(key[0], at: start)
    }

    fileprivate func erase() { page.store(0, at: start) }
  }

  private struct State {
    var pageCount: Int
    var free: [Record]
    /// When another page may be tried again after a failure.
    var growsAgain = Instant(nanoseconds: 0)
    /// The records of the previous incarnation.
    var inherited: [[UInt8]: (record: Record, slots: [UInt8])]
  }

  private let home: MemberDirectory
  private let isMute: Bool
  private let state: Monitor<State>

  init(_ home: MemberDirectory, isMute: Bool) throws(WormholeError) {
    self.home = home
    self.isMute = isMute
    var content = try home.readProgress(
      Self.fileName, largest: Self.pageSize * Self.largestPageCount)
    let pageCount = max(1, (content.count + Self.pageSize - 1) / Self.pageSize)
    content += [UInt8](repeating: 0, count: pageCount * Self.pageSize - content.count)
    let pages = try home.makeProgress(Self.fileName, content, page: Self.pageSize)
    var state = State(pageCount: pageCount, free: [], inherited: [:])
    for (page, mapping) in pages.enumerated() {
      for place in (0..<Self.recordsInPage).reversed() {
        let record = Record(page: mapping, start: place * Self.recordSize, isMute: isMute)
        let start = page * Self.pageSize + record.start
        guard content[start] != 0 else {
          state.free.append(record)
          continue
        }
        let slots = start + Self.slotsOffset
        let key = Array(content[start..<(start + Self.keySize)])
        state.inherited[key] = (record, Array(content[slots..<(slots + Self.slotCount)]))
      }
    }
    self.state = Monitor(state)
  }

  private static func key(_ name: MessageName) -> [UInt8] {
    var text = name.text
    return text.withUTF8 { bytes in
      // The stamp distinguishes nearly all names, and the hash the rest.
      let hash = FowlerHash.hash(bytes)
      return Array(bytes[2..<22]) + withUnsafeBytes(of: hash.littleEndian) { Array($0) }
    }
  }

  /// Returns the record of a batch: the one started by the previous incarnation, or a new one.
  ///
  /// - Returns: nil if no record is available.
  func open(_ name: MessageName, count: Int) -> (record: Record, slots: BatchSlots?)? {
    let key = Self.key(name)
    return state.withLock { state in
      if !state.inherited.isEmpty, let (record, slots) = state.inherited.removeValue(forKey: key) {
        return (record, BatchSlots(slots.prefix(count)))
      }
      if state.free.isEmpty { grow(&state) }
      guard let record = state.free.popLast() else { return nil }
      record.write(key)
      return (record, nil)
    }
  }

  /// Adds a page, if space is left for it.
  private func grow(_ state: inout State) {
    let now = Instant.now
    guard state.pageCount < Self.largestPageCount, now >= state.growsAgain else { return }
    let size = state.pageCount * Self.pageSize
    guard
      let mapping = try? home.extendProgress(Self.fileName, size: size, page: Self.pageSize)
    else {
      state.growsAgain = now + .seconds(1)
      return
    }
    state.pageCount += 1
    for place in (0..<Self.recordsInPage).reversed() {
      state.free.append(Record(page: mapping, start: place * Self.recordSize, isMute: isMute))
    }
  }

  /// Whether the previous incarnation had claimed this batch and started a record for it.
  func knows(_ name: MessageName) -> Bool {
    state.withLock { $0.inherited[Self.key(name)] != nil }
  }

  /// Frees the record of a settled batch.
  func close(_ record: Record) {
    record.erase()
    state.withLock { $0.free.append(record) }
  }

  /// Erases records of the previous incarnation whose batches are no longer claimed.
  func forgetInherited(but names: [MessageName]) {
    let keys = Set(names.map(Self.key))
    state.withLock { state in
      for (key, (record, _)) in state.inherited where !keys.contains(key) {
        state.inherited[key] = nil
        record.erase()
        state.free.append(record)
      }
    }
  }
}
