internal import PropertyLists
internal import Synchronization
package import Syscalls

/// Goes through a file once, in constant memory: sums it up, and copies it if asked.
///
/// What is copied passes through a buffer that stays in the processor's cache, so that the sum
/// costs next to nothing there; copying within the kernel and reading again is slower. Holes are
/// neither read nor written, and count as the zeros that they read as. The second half of a large
/// file is done by a thread of its own.
package enum FileCopy {
  /// Why it was not gone through to the end.
  package enum Failure: Error, Hashable, Sendable {
    case system(Errno)
    /// It has become shorter than it was at the beginning.
    case shrank(to: Int)
    case cancelled
  }

  /// Is told how far it has come; whether to go on.
  package typealias Report = (_ done: Int) -> Bool

  /// What is done with the bytes at an offset, once they are summed up.
  fileprivate typealias Use = (UnsafeRawBufferPointer, _ offset: Int) throws(Errno) -> Void

  fileprivate static let step = 128 << 10
  /// How much comes between two reports.
  private static let stride = 8 << 20
  /// From which size on two threads are faster than one.
  private static let large = 16 << 20

  /// The checksum of the first bytes of a file.
  package static func checksum(
    of file: borrowing Descriptor, size: Int, _ report: Report
  ) throws(Failure) -> UInt32 {
    let helper = size >= large ? SecondHalf(of: file, size: size, to: nil) : nil
    return try walk(file, size, helper, report) { _, _ in }
  }

  /// Makes an empty file the copy of the first bytes of another; answers their checksum.
  ///
  /// What is appended to the source meanwhile does not come along.
  package static func copy(
    _ source: borrowing Descriptor, to target: borrowing Descriptor, size: Int, _ report: Report
  ) throws(Failure) -> UInt32 {
    if size > 0, (try? target.clone(from: source)) != nil {
      // It has all that the source has by now.
      try system { () throws(Errno) in
        if try target.status().size > size { try target.truncate(to: size) }
      }
      return try checksum(of: target, size: size, report)
    }
    let number = target.rawValue
    let helper = size >= large ? SecondHalf(of: source, size: size, to: number) : nil
    let sum = try walk(source, size, helper, report) { bytes, offset throws(Errno) in
      // Kept open by the borrowed descriptor.
      try Descriptor.writeFully(bytes, at: offset, toOpen: number)
    }
    // A hole at the end was not written.
    try system { () throws(Errno) in
      if try target.status().size < size { try target.truncate(to: size) }
    }
    return sum
  }

  /// The most that a file may have whose size the kernel does not tell.
  private static let largestUnsized = 1 << 30

  /// Makes an empty file the copy of one that says that it is empty, and may not be: those of
  /// `/proc` and the like are made while they are read.
  ///
  /// - Returns: how much it was; nil if it is empty, or was until somebody has just written to it.
  static func copyUnsized(
    _ source: borrowing Descriptor, to target: borrowing Descriptor, _ report: Report
  ) throws(Failure) -> (size: Int, checksum: UInt32)? {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: step, alignment: 4096)
    defer { buffer.deallocate() }
    let number = target.rawValue
    var sum = Checksum()
    var size = 0
    while true {
      var count = 0
      try system { () throws(Errno) in
        // Whatever it gives at a time: only nothing is the end.
        count = try source.read(into: buffer, at: size)
        guard count > 0 else { return }
        // What was appended to an ordinary file does not come along.
        if size == 0, try source.status().size > 0 { count = 0 }
        let read = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        sum.add(read)
        // Kept open by the borrowed descriptor.
        try Descriptor.writeFully(read, at: size, toOpen: number)
      }
      guard count > 0 else { return size == 0 ? nil : (size, sum.value) }
      size += count
      guard size <= largestUnsized else { throw .system(.fileTooLarge) }
      guard report(size) else { throw .cancelled }
    }
  }

  private static func walk(
    _ file: borrowing Descriptor, _ size: Int, _ helper: SecondHalf?, _ report: Report, _ use: Use
  ) throws(Failure) -> UInt32 {
    var sum = Checksum()
    var reported = 0
    let end = helper?.range.lowerBound ?? size
    do throws(Failure) {
      try walk(file, 0..<end, &sum, use) { done in
        let all = done + (helper?.done ?? 0)
        guard all - reported >= stride, all < size else { return true }
        reported = all
        return report(all)
      }
    } catch {
      helper?.stop()
      helper?.end()
      throw error
    }
    helper?.end()
    if let helper { sum.append(try helper.result.get(), count: helper.range.count) }
    // What was cut off reads as a hole.
    var now = 0
    try system { () throws(Errno) in now = try file.status().size }
    guard now >= size else { throw .shrank(to: now) }
    guard report(size) else { throw .cancelled }
    return sum.value
  }

  fileprivate static func walk(
    _ file: borrowing Descriptor, _ range: Range<Int>, _ sum: inout Checksum, _ use: Use,
    _ goesOn: (_ done: Int) -> Bool
  ) throws(Failure) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(1, min(step, range.count)), alignment: 4096)
    defer { buffer.deallocate() }
    var offset = range.lowerBound
    while offset < range.upperBound {
      let data: Int
      let hole: Int
      do throws(Errno) {
        data = min(range.upperBound, try file.nextData(from: offset) ?? range.upperBound)
        hole =
          data == range.upperBound
          ? data : min(range.upperBound, try file.nextHole(from: data) ?? range.upperBound)
      } catch {
        throw .system(error)
      }
      sum.addZeros(data - offset)
      offset = data
      while offset < hole {
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(step, hole - offset)])
        var count = 0
        do throws(Errno) {
          count = try file.readFully(into: part, at: offset)
          let read = UnsafeRawBufferPointer(rebasing: part[..<count])
          sum.add(read)
          if count == part.count { try use(read, offset) }
        } catch {
          throw .system(error)
        }
        offset += count
        guard count == part.count else { throw .shrank(to: offset) }
        guard goesOn(offset - range.lowerBound) else { throw .cancelled }
      }
    }
  }

  private static func system(_ body: () throws(Errno) -> Void) throws(Failure) {
    if let error = Errno.of(body) { throw .system(error) }
  }
}

/// The second half of a large file, on a thread of its own.
private final class SecondHalf: Sendable {
  let range: Range<Int>
  private let work: Work
  private let thread: Thread

  private final class Work: Sendable {
    let source: Descriptor
    let range: Range<Int>
    /// Kept open by who waits for the thread; nil if nothing is written.
    let target: CInt?
    let done = Atomic<Int>(0)
    let isStopped = Atomic<Bool>(false)
    let result = Monitor<Result<Checksum, FileCopy.Failure>>(.failure(.cancelled))

    init(_ source: consuming Descriptor, _ range: Range<Int>, _ target: CInt?) {
      self.source = source
      self.range = range
      self.target = target
    }

    func run() {
      var sum = Checksum()
      do throws(FileCopy.Failure) {
        try FileCopy.walk(source, range, &sum) { bytes, offset throws(Errno) in
          guard let target else { return }
          try Descriptor.writeFully(bytes, at: offset, toOpen: target)
        } _: { done in
          self.done.store(done, ordering: .relaxed)
          return !isStopped.load(ordering: .relaxed)
        }
        result.withLock { [sum] in $0 = .success(sum) }
      } catch {
        result.withLock { $0 = .failure(error) }
      }
    }
  }

  /// Nil if there is no thread to be had, or no descriptor; then one does it all.
  init?(of source: borrowing Descriptor, size: Int, to target: CInt?) {
    range = (size / 2 / FileCopy.step * FileCopy.step)..<size
    guard let own = try? source.duplicate() else { return nil }
    let work = Work(own, range, target)
    guard let thread = try? Thread("file", { work.run() }) else { return nil }
    self.work = work
    self.thread = thread
  }

  var done: Int { work.done.load(ordering: .relaxed) }

  var result: Result<Checksum, FileCopy.Failure> { work.result.withLock { $0 } }

  func stop() { work.isStopped.store(true, ordering: .relaxed) }

  /// Waits for it.
  func end() { thread.join() }
}
