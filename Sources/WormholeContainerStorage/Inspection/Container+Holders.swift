import WormholeSyscalls

/// A lock that a process holds at the moment of a look.
package struct SeenLock: Sendable, Equatable {
  /// The folder of the lock's slot: `system` for named locks, `channels` for changes of a channel.
  package let folder: Container.Folder
  package let name: String
  /// The path of the lock's file below the container.
  package let path: String
  package let holder: LockHolder
}

extension Container {
  /// Returns the locks that processes hold, as far as this process can see them.
  ///
  /// The kernel's report is compared with the holders' marks, and no lock is tried: a look never
  /// holds up a process that wants a lock.
  package func locksSeen(in folders: [Folder] = [.system, .channels]) -> [SeenLock] {
    let holders = FileLocks.holders()
    guard !holders.isEmpty else { return [] }
    return folders.flatMap { folder in
      ((try? names(in: folder)) ?? []).compactMap { held(folder, $0, holders) }
    }
  }

  private func held(
    _ folder: Folder, _ name: String, _ holders: [UInt64: Set<Int32>]
  ) -> SeenLock? {
    let lock = "\(folder.rawValue)/\((try? slot(folder, name).escaped) ?? "")/lock"
    do throws(Errno) {
      let directory = try root.descriptor.open(lock, .readOnlyDirectory)
      let numbers = Slot.generations(of: try directory.names())
      guard let highest = numbers.values.max() else { return nil }
      let file = try directory.open("\(highest)", .readOnlyNonBlocking)
      let mark = try HolderMark(in: file)
      guard let process = mark.process, let holder = LockHolder(mark),
        try holders[file.status().inode]?.contains(process) == true
      else { return nil }
      return SeenLock(folder: folder, name: name, path: "\(lock)/\(highest)", holder: holder)
    } catch {
      return nil
    }
  }
}
