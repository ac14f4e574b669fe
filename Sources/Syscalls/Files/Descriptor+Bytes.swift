internal import CLinux
import Glibc

extension Descriptor {
  /// Reads once, from the present offset; 0 at the end.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let descriptor = try number
    let count = shortened(.read, descriptor, buffer.count)
    return try perform(.read, on: descriptor) {
      Glibc.read(descriptor, buffer.baseAddress, count)
    }
  }

  /// Reads once, from an offset of the caller's.
  package func read(
    into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws(Errno) -> Int {
    let descriptor = try number
    let count = shortened(.pread, descriptor, buffer.count)
    return try perform(.pread, on: descriptor) {
      Glibc.pread(descriptor, buffer.baseAddress, count, offset)
    }
  }

  /// Reads until the buffer is full or the file ends; answers how many bytes came.
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

  /// Writes once, at the present offset; may take fewer bytes than it is given.
  package func write(_ bytes: UnsafeRawBufferPointer) throws(Errno) -> Int {
    let descriptor = try number
    let count = shortened(.write, descriptor, bytes.count)
    return try perform(.write, on: descriptor) {
      Glibc.write(descriptor, bytes.baseAddress, count)
    }
  }

  /// Writes all the bytes at the present offset.
  package func writeFully(_ bytes: UnsafeRawBufferPointer) throws(Errno) {
    var done = 0
    while done < bytes.count {
      let count = try write(UnsafeRawBufferPointer(rebasing: bytes[done...]))
      // Not for a regular file, and for no other may it become a loop without an end.
      guard count > 0 else { throw .inputOutput }
      done += count
    }
  }

  /// Writes all the bytes at an offset of the caller's.
  package func writeFully(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(Errno) {
    try Self.writeFully(bytes, at: offset, toOpen: number)
  }

  /// The same for a descriptor that its owner promises to keep open meanwhile.
  package static func writeFully(
    _ bytes: UnsafeRawBufferPointer, at offset: Int, toOpen descriptor: CInt
  ) throws(Errno) {
    var done = 0
    while done < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
      let count = shortened(.pwrite, descriptor, rest.count)
      let position = offset + done
      let written = try perform(.pwrite, on: descriptor) {
        Glibc.pwrite(descriptor, rest.baseAddress, count, position)
      }
      guard written > 0 else { throw .inputOutput }
      done += written
    }
  }

  /// Sets aside room for that many bytes, so that writing them later cannot fail for want of it.
  package func reserve(_ size: Int) throws(Errno) {
    let descriptor = try number
    _ = try perform(.fallocate, on: descriptor) { linux_fallocate(descriptor, size) }
  }

  package func truncate(to size: Int) throws(Errno) {
    let descriptor = try number
    _ = try perform(.ftruncate, on: descriptor) { Glibc.ftruncate(descriptor, size) }
  }

  /// Where data begins, at an offset or behind it; nil if only holes follow, or nothing.
  ///
  /// Where the file system knows of no holes, there are none. It moves the present offset.
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

  /// Where a hole begins, at an offset or behind it; the end of the file counts as one.
  ///
  /// Nil if the offset is behind that, or if the file system knows of no holes.
  package func nextHole(from offset: Int) throws(Errno) -> Int? {
    let descriptor = try number
    do throws(Errno) {
      return try perform(.lseek, on: descriptor) { linux_next_hole(descriptor, offset) }
    } catch {
      let harmless: Set<Errno> = [.noDevice, .invalidArgument, .notSupported]
      guard harmless.contains(error) else { throw error }
      return nil
    }
  }

  /// Makes this file's blocks those of another, where the file system can share them.
  package func clone(from source: borrowing Descriptor) throws(Errno) {
    let (to, from) = (try number, try source.number)
    _ = try perform(.clone, on: from) { linux_clone_file(to, from) }
  }

  /// Copies up to `count` bytes within the kernel, at both files' present offsets.
  package func copy(from source: borrowing Descriptor, count: Int) throws(Errno) -> Int {
    let (to, from) = (try number, try source.number)
    return try perform(.copyRange, on: from) { linux_copy_file_range(from, to, count) }
  }

  /// Forces the file's content, or the directory's names, to disk.
  package func sync() throws(Errno) {
    let descriptor = try number
    CallCounters.countSync()
    _ = try perform(.fsync, on: descriptor) { Glibc.fsync(descriptor) }
  }

  /// Forces the file's content to disk, and of its status only what reading it back needs.
  package func syncData() throws(Errno) {
    let descriptor = try number
    CallCounters.countSync()
    _ = try perform(.fdatasync, on: descriptor) { Glibc.fdatasync(descriptor) }
  }
}

@inline(__always)
private func shortened(_ call: Call, _ descriptor: CInt, _ count: Int) -> Int {
  #if FAULT_POINTS
    FaultPoints.limit(call, descriptor, count)
  #else
    count
  #endif
}
