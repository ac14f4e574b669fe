internal import Syscalls

extension Container {
  /// The names of the slots that hold, or held, a value; unescaped and sorted.
  ///
  /// A slot that is only watched, or whose first change failed, has a directory and nothing in it.
  package func slotNames(in folder: Folder) throws(WormholeError) -> [String] {
    try names(in: folder).filter { name in
      guard let escaped = try? EscapedName.escape(name),
        let parent = try? existingFolder(folder)
      else { return false }
      return [Slot.valueName, Slot.keptName].contains { file in
        (try? parent.descriptor.status(of: "\(escaped)/\(file)")) != nil
      }
    }
  }
}
