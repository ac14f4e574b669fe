package import WormholeSyscalls

/// The events that this process's inotify instances report of a directory, as the kernel shows
/// them: one mask for each instance.
package func watchMasks(of directory: borrowing Descriptor) throws -> [InotifyMask] {
  let node = "ino:" + String(try directory.status().inode, radix: 16)
  let all = try Descriptor.open(path: "/proc/self/fdinfo", [.readOnly, .directory])
  return try all.names().flatMap { name -> [InotifyMask] in
    // Other tests close their descriptors in the meantime.
    guard let bytes = try? all.open(name, [.readOnly]).contents() else { return [] }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    return lines.map { $0.split(separator: " ") }.compactMap { words -> InotifyMask? in
      guard words.first == "inotify", words.contains(Substring(node)) else { return nil }
      let mask = words.first { $0.hasPrefix("mask:") }
      return mask.flatMap { UInt32($0.dropFirst(5), radix: 16) }.map(InotifyMask.init(rawValue:))
    }
  }
}
