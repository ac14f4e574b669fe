import WormholeLibC

/// The locks on whole files that the kernel reports in `/proc/locks`.
///
/// Reading the report tries no lock, so no other process notices it. The report leaves out locks of
/// processes that cannot be seen from here.
package enum FileLocks {
  /// The processes that have taken an exclusive lock, by the inode of the locked file.
  package static func holders() -> [UInt64: Set<Int32>] {
    guard let file = try? Descriptor.open(path: "/proc/locks", [.readOnly]) else { return [:] }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = try? bytes.withUnsafeMutableBytes { (buffer) throws(Errno) in
      var done = 0
      while done < buffer.count {
        let more = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[done...]))
        if more == 0 { break }
        done += more
      }
      return done
    }
    var holders: [UInt64: Set<Int32>] = [:]
    for line in String(decoding: bytes[..<(count ?? 0)], as: UTF8.self).split(separator: "\n") {
      // As in `1: FLOCK ADVISORY WRITE 4711 08:01:131073 0 EOF`; a waiter has an arrow.
      let words = line.split(separator: " ")
      guard words.count > 5, words[1] == "FLOCK", words[3] == "WRITE",
        let process = Int32(words[4]),
        let inode = words[5].split(separator: ":").last.flatMap({ UInt64($0) })
      else { continue }
      holders[inode, default: []].insert(process)
    }
    return holders
  }
}
