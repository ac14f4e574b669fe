internal import WormholeSyscalls

/// The space that parts of a container take.
extension Container {
  /// A number of files, and their bytes.
  package struct Usage: Hashable, Sendable {
    package var count = 0
    package var bytes = 0

    package init() {}
  }

  /// Returns the number of channels that have, or had, a value, and the bytes of their values.
  ///
  /// No value is read, and nothing is kept of a channel but its size.
  package func channelUsage() throws(WormholeError) -> Usage {
    try usage(of: .channels) { "\($0)/\(Slot.valueName)" }
  }

  /// Returns the files in `damaged/`, without those that state the reasons.
  package func damagedUsage() throws(WormholeError) -> Usage {
    try usage(of: .damaged) { $0.ends(with: ".reason") ? nil : $0 }
  }

  private func usage(
    of folder: Folder, _ file: (String) -> String?
  ) throws(WormholeError) -> Usage {
    var usage = Usage()
    do throws(Errno) {
      let listing = try options.sharing.openExisting(folder.rawValue, in: root.descriptor)
      try listing.forEachName(isFresh: true) { name throws(Errno) in
        guard let name = String(validatingCString: name), let path = file(name),
          let status = try? listing.status(of: path)
        else { return true }
        usage.count += 1
        usage.bytes = usage.bytes.addingClamped(status.size)
        return true
      }
    } catch {
      guard error != .noSuchFile else { return usage }
      throw WormholeError(error, "list", path + "/" + folder.rawValue, in: self, folder.rawValue)
    }
    return usage
  }

  /// The bytes that are free on the file system; nil if they cannot be determined.
  package var freeBytes: Int? {
    (try? root.descriptor.fileSystem()).map { Int(clamping: $0.freeBytes) }
  }
}
