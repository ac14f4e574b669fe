internal import WormholeSyscalls

extension Slot {
  /// Removes the damaged values of the name that were set aside.
  ///
  /// - Parameter durability: `.power` syncs `damaged/`, also if no value is found: an earlier call
  ///   may have removed the values without a sync.
  package func discardDamaged(durability: Durability = .process) throws(WormholeError) {
    var unsynced: Errno?
    do throws(Errno) {
      guard let damaged = try OpenDirectory.existing(.damaged, of: container) else { return }
      for file in try damaged.descriptor.names() where isOurs(file) {
        guard try isOfThis(stem(file), in: damaged.descriptor) else { continue }
        for end in [".plist", ".reason"] {
          try ignoring(.noSuchFile, damaged.descriptor.unlink(stem(file) + end))
        }
      }
      if durability == .power {
        unsynced = Errno.of { () throws(Errno) in try damaged.descriptor.sync() }
      }
    } catch {
      throw WormholeError(
        .partlyDone, "erase \(title)", name,
        because: "the erasure is done, but a damaged copy can still be read: \(error)",
        hint: "remove the copy from damaged/", errno: error)
    }
    // Some file systems sync no directory.
    guard let unsynced, unsynced != .invalidArgument else { return }
    throw WormholeError(
      .notDurable, "erase \(title)", name,
      because: "the erasure is done, but damaged/ could not be synced: \(unsynced)",
      hint: "repeat the operation, because a power cut may bring a damaged copy back",
      errno: unsynced)
  }

  /// Whether the file name is a time, a dot, and the name of this slot.
  private func isOurs(_ file: String) -> Bool {
    let time = file.prefix { $0.isNumber }
    return !time.isEmpty && file.ends(with: ".plist") && stem(file) == "\(time).\(escaped)"
  }

  private func stem(_ file: String) -> String { String(file.dropLast(".plist".count)) }

  /// A channel and a suite may have the same name: the reason file contains the path of the value.
  private func isOfThis(
    _ stem: String, in damaged: borrowing Descriptor
  ) throws(Errno) -> Bool {
    let reason = try ignoring(
      .noSuchFile, damaged.open(stem + ".reason", .readOnlyNonBlocking).readAll(size: 512))
    return reason?.starts(with: "\(path)/".utf8) ?? true
  }
}

extension OpenDirectory {
  /// Returns a container's own directory; nil if it is missing.
  fileprivate static func existing(
    _ folder: Container.Folder, of container: Container
  ) throws(Errno) -> OpenDirectory? {
    try ignoring(
      .noSuchFile,
      OpenDirectory(container.root.descriptor.open(folder.rawValue, .readOnlyDirectory)))
  }
}
