import WormholeLibC
#if FAULT_POINTS
  internal import WormholeCLinux
#endif

/// The events that inotify is to report.
package struct InotifyMask: OptionSet, Sendable {
  package let rawValue: UInt32
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  package static let movedTo = InotifyMask(rawValue: UInt32(IN_MOVED_TO))
  package static let movedFrom = InotifyMask(rawValue: UInt32(IN_MOVED_FROM))
  package static let created = InotifyMask(rawValue: UInt32(IN_CREATE))
  package static let deleted = InotifyMask(rawValue: UInt32(IN_DELETE))
  package static let closedAfterWriting = InotifyMask(rawValue: UInt32(IN_CLOSE_WRITE))
  package static let attributes = InotifyMask(rawValue: UInt32(IN_ATTRIB))
  package static let selfDeleted = InotifyMask(rawValue: UInt32(IN_DELETE_SELF))
  package static let selfMoved = InotifyMask(rawValue: UInt32(IN_MOVE_SELF))
  package static let ignored = InotifyMask(rawValue: UInt32(IN_IGNORED))
  package static let overflow = InotifyMask(rawValue: UInt32(IN_Q_OVERFLOW))
  package static let onlyDirectory = InotifyMask(rawValue: UInt32(IN_ONLYDIR))
  /// Adds to the events for which the same directory is watched already.
  package static let added = InotifyMask(rawValue: UInt32(IN_MASK_ADD))

  /// Of an event: the kernel has discarded earlier events.
  package var tellsOfOverflow: Bool { rawValue & UInt32(IN_Q_OVERFLOW) != 0 }

  /// Of an event: no more events of this directory will arrive.
  package var tellsOfEnd: Bool {
    rawValue & UInt32(IN_IGNORED | IN_DELETE_SELF | IN_UNMOUNT) != 0
  }
}

/// One inotify instance.
///
/// The kernel allows each user few instances (128), so a process has one.
package final class Inotify: Sendable {
  package let descriptor: Descriptor
  /// The buffer for events; stored here, because each notice would otherwise allocate a buffer.
  // Used by one thread at a time: see `drain(_:)`.
  private nonisolated(unsafe) let buffer: UnsafeMutableRawBufferPointer

  package init() throws(Errno) {
    descriptor = Descriptor(
      adopting: try perform(.inotifyInit) {
        WormholeLibC.inotify_init1(CInt(IN_CLOEXEC | IN_NONBLOCK))
      })
    buffer = .allocate(byteCount: 16 * 1024, alignment: 8)
  }

  /// Watches the directory itself, whatever its name is or becomes.
  ///
  /// Watching the same directory again returns the same number, and the last mask applies.
  package func watch(
    _ directory: borrowing Descriptor, _ mask: InotifyMask
  ) throws(Errno) -> CInt {
    let (instance, watched) = (try descriptor.number, try directory.number)
    // inotify accepts only paths; this path names the open directory itself.
    let path = "/proc/self/fd/\(watched)"
    return try perform(.inotifyAdd, on: watched) {
      WormholeLibC.inotify_add_watch(instance, path, mask.rawValue)
    }
  }

  package func unwatch(_ number: CInt) throws(Errno) {
    let instance = try descriptor.number
    _ = try perform(.inotifyRemove) { WormholeLibC.inotify_rm_watch(instance, number) }
  }

  deinit { buffer.deallocate() }

  /// Passes on the events, oldest first; returns at once if no event is queued.
  ///
  /// Two threads must not call this at once.
  ///
  /// The name is that of the directory entry concerned, nil if the event is about the directory
  /// itself.
  package func drain(
    _ body: (_ watch: CInt, _ mask: InotifyMask, _ name: UnsafePointer<CChar>?) -> Void
  ) throws(Errno) {
    while true {
      let count: Int
      do {
        count = try descriptor.read(into: buffer)
      } catch {
        if error == .wouldBlock { return }
        throw error
      }
      #if FAULT_POINTS
        if turnstile_loses_notices() != 0 { return body(-1, .overflow, nil) }
      #endif
      var offset = 0
      while offset + MemoryLayout<inotify_event>.size <= count {
        let event = buffer.baseAddress! + offset
        let header = event.loadUnaligned(as: inotify_event.self)
        let name =
          header.len == 0
          ? nil : (event + MemoryLayout<inotify_event>.size).assumingMemoryBound(to: CChar.self)
        body(header.wd, InotifyMask(rawValue: header.mask), name)
        offset += MemoryLayout<inotify_event>.size + Int(header.len)
      }
      if count < buffer.count / 2 { return }
    }
  }
}
