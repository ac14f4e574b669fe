internal import Synchronization
internal import WormholePropertyLists
package import WormholeSyscalls

/// Reads a file once, in constant memory: computes its checksum, and copies it if requested.
///
/// Copied bytes pass through a buffer that stays in the processor's cache, so the checksum costs
/// almost nothing; copying within the kernel and reading again is slower. Holes are neither read
/// nor written, and count as the zeros that a read would return. A separate thread processes the
/// second half of a large file.
package enum FileCopy {
  /// Receives the progress; returns whether to continue.
  package typealias Report = (_ done: Int) -> Bool

  /// Uses the bytes at an offset, after they were added to the checksum.
  fileprivate typealias Use = (RawSpan, _ offset: Int) throws(Errno) -> Void

  fileprivate static let step = 128 << 10
  /// The number of bytes between two reports.
  private static let stride = 8 << 20
  /// The size above which two threads are faster.
  private static let large = 16 << 20

  /// Returns the checksum of the first bytes of a file.
  package static func checksum(
    of file: borrowing Descriptor, size: Int, _ report: Report
  ) throws(CopyFailure) -> UInt32 {
    let helper = size >= large ? SecondHalf(of: file, size: size, to: nil) : nil
    return try walk(file, size, helper, report) { _, _ in }
  }

  /// Copies the first bytes of a file into an empty file; returns their checksum.
  ///
  /// Bytes that are appended to the source in the meantime are not copied.
  package static func copy(
    _ source: borrowing Descriptor, to target: borrowing Descriptor, size: Int, _ report: Report
  ) throws(CopyFailure) -> UInt32 {
    if size > 0, (try? target.clone(from: source)) != nil {
      // The clone contains all bytes that the source has by now.
      try CopyFailure.wrapping { () throws(Errno) -> Void in
        if try target.status().size > size { try target.truncate(to: size) }
      }
      return try checksum(of: target, size: size, report)
    }
    let number = target.rawValue
    let helper = size >= large ? SecondHalf(of: source, size: size, to: number) : nil
    let sum = try walk(source, size, helper, report) { bytes, offset throws(Errno) in
      // The borrowed descriptor stays open.
      try Descriptor.writeFully(bytes, at: offset, toOpen: number)
    }
    // A hole at the end was not written.
    try CopyFailure.wrapping { () throws(Errno) -> Void in
      if try target.status().size < size { try target.truncate(to: size) }
    }
    return sum
  }

  /// The largest file whose size the kernel does not report.
  private static let largestUnsized = 1 << 30

  /// Copies a file that reports the size 0 but may have content: files of `/proc` and the like are
  /// generated while they are read.
  ///
  /// - Returns: the size and the checksum; nil if the file is empty, or was empty until a very
  ///   recent write.
  static func copyUnsized(
    _ source: borrowing Descriptor, to target: borrowing Descriptor, _ report: Report
  ) throws(CopyFailure) -> (size: Int, checksum: UInt32)? {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: step, alignment: 4096)
    defer { buffer.deallocate() }
    let number = target.rawValue
    var sum = Checksum()
    var size = 0
    while true {
      var count = 0
      try CopyFailure.wrapping { () throws(Errno) -> Void in
        // Reads may be short at any point: only an empty read is the end.
        count = try source.read(into: buffer, at: size)
        guard count > 0 else { return }
        // Bytes appended to an ordinary file are not copied.
        if size == 0, try source.status().size > 0 { count = 0 }
        let read = buffer.bytes.extracting(..<count)
        sum.add(read)
        // The borrowed descriptor stays open.
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
  ) throws(CopyFailure) -> UInt32 {
    var sum = Checksum()
    var reported = 0
    let end = helper?.range.lowerBound ?? size
    do throws(CopyFailure) {
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
    // A truncated part reads as a hole.
    let now = try CopyFailure.wrapping { () throws(Errno) in try file.status().size }
    guard now >= size else { throw .shrank(to: now) }
    guard report(size) else { throw .cancelled }
    return sum.value
  }

  fileprivate static func walk(
    _ file: borrowing Descriptor, _ range: Range<Int>, _ sum: inout Checksum, _ use: Use,
    _ goesOn: (_ done: Int) -> Bool
  ) throws(CopyFailure) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(1, min(step, range.count)), alignment: 4096)
    defer { buffer.deallocate() }
    var offset = range.lowerBound
    while offset < range.upperBound {
      var (data, hole) = (0, 0)
      try CopyFailure.wrapping { () throws(Errno) -> Void in
        data = min(range.upperBound, try file.nextData(from: offset) ?? range.upperBound)
        hole =
          data == range.upperBound
          ? data : min(range.upperBound, try file.nextHole(from: data) ?? range.upperBound)
      }
      sum.addZeros(data - offset)
      offset = data
      while offset < hole {
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(step, hole - offset)])
        var count = 0
        try CopyFailure.wrapping { () throws(Errno) -> Void in
          count = try file.readFully(into: part, at: offset)
          let read = part.bytes.extracting(..<count)
          sum.add(read)
          if count == part.count { try use(read, offset) }
        }
        offset += count
        guard count == part.count else {
          // The file may have become shorter than what was read before.
          let now = try CopyFailure.wrapping { () throws(Errno) in try file.status().size }
          throw .shrank(to: min(offset, now))
        }
        guard goesOn(offset - range.lowerBound) else { throw .cancelled }
      }
    }
  }
}

/// The reason why the file was not read to its end.
package enum CopyFailure: SystemFailure, Hashable, Sendable {
  case system(Errno)
  /// The file has become shorter since the start.
  case shrank(to: Int)
  case cancelled
}

/// The second half of a large file, processed by its own thread.
private final class SecondHalf: Sendable {
  let range: Range<Int>
  private let work: Work
  private let thread: Thread

  private final class Work: Sendable {
    let source: Descriptor
    let range: Range<Int>
    /// Stays open because the caller waits for the thread; nil if no copy is made.
    let target: CInt?
    let done = Atomic<Int>(0)
    let isStopped = Atomic<Bool>(false)
    let result = Monitor<Result<Checksum, CopyFailure>>(.failure(.cancelled))

    init(_ source: consuming Descriptor, _ range: Range<Int>, _ target: CInt?) {
      self.source = source
      self.range = range
      self.target = target
    }

    func run() {
      var sum = Checksum()
      do throws(CopyFailure) {
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

  /// Nil if there is no thread or descriptor available; then the caller's thread reads the whole
  /// file.
  init?(of source: borrowing Descriptor, size: Int, to target: CInt?) {
    range = (size / 2 / FileCopy.step * FileCopy.step)..<size
    guard let own = try? source.duplicate() else { return nil }
    let work = Work(own, range, target)
    guard let thread = try? Thread("wormhole-copy", { work.run() }) else { return nil }
    self.work = work
    self.thread = thread
  }

  var done: Int { work.done.load(ordering: .relaxed) }

  var result: Result<Checksum, CopyFailure> { work.result.withLock { $0 } }

  func stop() { work.isStopped.store(true, ordering: .relaxed) }

  /// Waits for the thread.
  func end() { thread.join() }
}
