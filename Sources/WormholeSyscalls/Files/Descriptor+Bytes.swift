import WormholeLibC
internal import WormholeCLinux

extension Descriptor {
  /// Reads once, from the current offset; returns 0 at the end of the file.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let descriptor = try number
    let count = shortened(.read, descriptor, buffer.count)
    return try perform(.read, on: descriptor) {
      WormholeLibC.read(descriptor, buffer.baseAddress, count)
    }
  }

  /// Reads once, from the given offset.
  package func read(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(Errno) -> Int {
    let descriptor = try number
    let count = shortened(.pread, descriptor, buffer.count)
    return try perform(.pread, on: descriptor) {
      WormholeLibC.pread(descriptor, buffer.baseAddress, count, offset)
    }
  }

  /// Reads until the buffer is full or the file ends; returns the number of bytes read.
  package func readFully(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int = 0
  ) throws(Errno) -> Int {
    var done = 0
    while done < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
      let count = try read(into: rest, at: offset + done)
      if count == 0 { break }
      done += count
    }
    return done
  }

  /// Writes once, at the current offset; may write fewer bytes than the buffer contains.
  package func write(_ bytes: RawSpan) throws(Errno) -> Int {
    let descriptor = try number
    let count = shortened(.write, descriptor, bytes.byteCount)
    return try perform(.write, on: descriptor) {
      bytes.withUnsafeBytes { WormholeLibC.write(descriptor, $0.baseAddress, count) }
    }
  }

  /// Writes all the bytes at the current offset.
  package func writeFully(_ bytes: RawSpan) throws(Errno) {
    var done = 0
    while done < bytes.byteCount {
      let count = try write(bytes.extracting(done...))
      // A regular file never takes 0 bytes; for any other kind this check prevents an endless loop.
      guard count > 0 else { throw .inputOutput }
      done += count
    }
  }

  package func writeFully(_ bytes: [UInt8]) throws(Errno) {
    try writeFully(bytes.span.bytes)
  }

  /// Writes all the bytes at the given offset.
  package func writeFully(_ bytes: RawSpan, at offset: Int) throws(Errno) {
    try Self.writeFully(bytes, at: offset, toOpen: number)
  }

  /// Writes all the bytes to a number that its owner promises to keep open during the call.
  package static func writeFully(
    _ bytes: RawSpan, at offset: Int, toOpen descriptor: CInt
  ) throws(Errno) {
    var done = 0
    while done < bytes.byteCount {
      let rest = bytes.extracting(done...)
      let count = shortened(.pwrite, descriptor, rest.byteCount)
      let position = offset + done
      let written = try perform(.pwrite, on: descriptor) {
        rest.withUnsafeBytes { WormholeLibC.pwrite(descriptor, $0.baseAddress, count, position) }
      }
      guard written > 0 else { throw .inputOutput }
      done += written
    }
  }

  /// Reserves space for `size` bytes, so that a later write cannot fail for lack of space.
  package func reserve(_ size: Int) throws(Errno) {
    let descriptor = try number
    _ = try perform(.fallocate, on: descriptor) { linux_fallocate(descriptor, size) }
  }

  package func truncate(to size: Int) throws(Errno) {
    let descriptor = try number
    _ = try perform(.ftruncate, on: descriptor) { WormholeLibC.ftruncate(descriptor, size) }
  }

  /// Returns where data begins, at the offset or behind it; nil if only holes follow, or nothing.
  ///
  /// If the file system does not support holes, the file has none. The call moves the current
  /// offset.
  package func nextData(from offset: Int) throws(Errno) -> Int? {
    let descriptor = try number
    do throws(Errno) {
      return try perform(.lseek, on: descriptor) { linux_next_data(descriptor, offset) }
    } catch {
      if error == .noDevice { return nil }
      guard error == .invalidArgument || error == .notSupported else { throw error }
      return offset
    }
  }

  /// Returns where a hole begins, at the offset or behind it; the end of the file counts as a hole.
  ///
  /// Nil if the offset is behind the end, or if the file system does not support holes.
  package func nextHole(from offset: Int) throws(Errno) -> Int? {
    let descriptor = try number
    return try ignoring([.noDevice, .invalidArgument, .notSupported]) { () throws(Errno) in
      try perform(.lseek, on: descriptor) { linux_next_hole(descriptor, offset) }
    }
  }

  /// Makes this file share the blocks of another file, if the file system can share blocks.
  package func clone(from source: borrowing Descriptor) throws(Errno) {
    let (to, from) = (try number, try source.number)
    _ = try perform(.clone, on: from) { linux_clone_file(to, from) }
  }

  /// Forces the file's content, or the directory's names, to disk.
  package func sync() throws(Errno) {
    let descriptor = try number
    CallCounters.countSync()
    _ = try perform(.fsync, on: descriptor) { WormholeLibC.fsync(descriptor) }
  }

  /// Lets the kernel begin to write the file's content to disk, and does not wait.
  ///
  /// A hint for ``sync()``, which waits and reports errors: several files are written at once.
  package func startWriting() throws(Errno) {
    let descriptor = try number
    _ = try perform(.syncRange, on: descriptor) { linux_start_writing(descriptor) }
  }
}

/// Returns how many of `count` bytes a call may transfer: fewer if a test has them cut short.
@inline(__always)
func shortened(_ call: Call, _ descriptor: CInt, _ count: Int) -> Int {
  #if FAULT_POINTS
    FaultPoints.limit(call, descriptor, count)
  #else
    count
  #endif
}
