internal import SharedContainer
internal import Syscalls

/// `members/<name>/progress`: how far the batches that are in hand have come, so that after a death
/// what was done does not come again.
///
/// The file is written to by the process that receives, and by nobody else: what it stores there is
/// there for the next one even if it dies at once. Each incarnation makes a file of its own and
/// takes over what the last one left. It has pages of 512 records of 128 bytes, one at first, and
/// more when they are needed:
///
///      0  the stamp of the batch's name, 20 digits
///     20  a hash of the whole name, 8 bytes
///     32  64 slots, one for each message: see ``BatchSlots``
///
/// Its first byte is written last and erased first, so that a record that has one has a name and
/// slots that belong together.
///
/// Where there is no room for it, as on a full disk, batches are received without a record.
final class BatchProgress: Sendable {
  static let recordSize = 128
  static let recordsInPage = 512
  static let pageSize = recordSize * recordsInPage
  /// How many pages there may be, in what is made and in what is read.
  static let largestPageCount = 128
  static let fileName = MemberDirectory.progressName
  private static let keySize = 28
  private static let slotsOffset = 32
  static let slotCount = BatchSlots.largest

  /// Where the progress of one batch is written down.
  struct Record: Sendable {
    fileprivate let page: FilePage
    fileprivate let start: Int
    /// Stores nothing; for tests.
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
      Array(rest).withUnsafeBytes { page.store($0, at: start + 1) }
      page.store(key[0], at: start)
    }

    fileprivate func erase() { page.store(0, at: start) }
  }

  private struct State {
    var pageCount: Int
    var free: [Record]
    /// When it may be tried again to make another page.
    var growsAgain = Instant(nanoseconds: 0)
    /// What the last incarnation has left.
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
      // FNV-1a: the stamp tells nearly all names apart, and this the rest.
      let hash = bytes.reduce(UInt64(0xcbf2_9ce4_8422_2325)) {
        ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3
      }
      return Array(bytes[2..<22]) + withUnsafeBytes(of: hash.littleEndian) { Array($0) }
    }
  }

  /// The record of a batch; the one that the last incarnation had begun, or a new one.
  ///
  /// - Returns: nil if there is none to be had.
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

  /// Makes another page, if there is room for it.
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

  /// Whether a batch that was claimed by the last incarnation had come so far that it had a record.
  func knows(_ name: MessageName) -> Bool {
    state.withLock { $0.inherited[Self.key(name)] != nil }
  }

  /// The batch has come to its end.
  func close(_ record: Record) {
    record.erase()
    state.withLock { $0.free.append(record) }
  }

  /// Erases what the last incarnation left of batches that are no longer in hand.
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
