internal import WormholeSyscalls

/// A watch on the names in one of a container's folders.
///
/// A listing is not a snapshot, so each name is reported when it is noticed, once. The folder is
/// listed after the watch is registered, so that no name is missed permanently.
package final class FolderWatch: Sendable {
  package enum FolderChange: Sendable, Equatable {
    case came(String)
    case went(String)
  }

  private let container: Container
  private let folder: Container.Folder
  private let handler: @Sendable (FolderChange) -> Void
  /// The reported names, as they are in the folder.
  private let known = Monitor<Set<String>>([])
  private let worker = Worker()
  private let notices: NoticedFolder
  /// Retries periodically after a failed check.
  private let retrying = Monitor<DirectoryWatch?>(nil)

  fileprivate init(
    _ container: Container, _ folder: Container.Folder,
    _ handler: @escaping @Sendable (FolderChange) -> Void
  ) {
    self.container = container
    self.folder = folder
    self.handler = handler
    notices = NoticedFolder(worker)
  }

  fileprivate func begin(
    _ ended: @escaping @Sendable (ContainerEnd) -> Void
  ) throws(WormholeError) {
    let early = Mutants.has(.trustEmptyListing) ? try container.names(in: folder) : nil
    worker.begin { [weak self] in self?.look() }
    let mask: InotifyMask = [.created, .movedTo, .movedFrom, .deleted]
    try container.watching("watch", folder.rawValue, folder.rawValue) { () throws(Errno) in
      try notices.begin { hear throws(Errno) in
        try NamedWatch(container, [folder.rawValue], mask, ended: ended, hear)
      }
    }
    if early?.isEmpty == true { return }
    notices.loseTrack()
    worker.run()
  }

  private func look() {
    let due = notices.take()
    known.withLock { known in
      do throws(WormholeError) {
        var (now, names): (Set<String>?, Set<String>) = (nil, [])
        if case .changed(let changed) = due {
          names = Set(changed)
        } else {
          let all = try container.files(in: folder)
          (now, names) = (all, all.symmetricDifference(known))
        }
        for name in names.sorted() {
          let isThere: Bool
          if let now {
            isThere = now.contains(name)
          } else {
            isThere = try container.hasFile(name, in: folder)
          }
          if let change = note(name, isThere: isThere, &known) {
            notices.call { handler(change) }
          }
        }
        endRetrying()
      } catch {
        notices.loseTrack()
        retry(error)
      }
    }
  }

  private func retry(_ error: WormholeError) {
    let isFirst = retrying.withLock { retrying in
      guard retrying == nil else { return false }
      retrying = Watcher.shared.poll { [weak self] _ in self?.worker.trigger() }
      return true
    }
    if isFirst { container.log(.warning, error) }
    // `stop()` may have ended the retries before this one began.
    if !notices.isActive { endRetrying() }
  }

  private func endRetrying() { retrying.withLock { $0.take() }?.stop() }

  /// Returns the change to report; nil if there is none.
  private func note(_ file: String, isThere: Bool, _ known: inout Set<String>) -> FolderChange? {
    guard known.contains(file) != isThere,
      let name = EscapedName.unescape(file, allowance: folder.allowance(for: file))
    else { return nil }
    if isThere { known.insert(file) } else { known.remove(file) }
    return isThere ? .came(name) : .went(name)
  }

  /// Ends the watch; once this has returned, the handler is not called again.
  package func stop() {
    notices.stop()
    worker.end()
    endRetrying()
  }

  deinit { stop() }
}

extension Container {
  /// Reports the names that are in the folder, and each name that is added or removed.
  ///
  /// - Parameter ended: called when the container is no longer the one at its path.
  package func watchNames(
    in folder: Folder, _ handler: @escaping @Sendable (FolderWatch.FolderChange) -> Void,
    ended: @escaping @Sendable (ContainerEnd) -> Void = { _ in }
  ) throws(WormholeError) -> FolderWatch {
    let watch = FolderWatch(self, folder, handler)
    try watch.begin(ended)
    return watch
  }

  /// The names in a folder, unchanged; foreign names may be among them.
  fileprivate func files(in folder: Folder) throws(WormholeError) -> Set<String> {
    Set(
      try names(in: folder).compactMap {
        try? EscapedName.escape($0, allowance: folder.allowance(for: $0))
      })
  }

  /// Throws if this cannot be determined: a name that is reported as gone would not come back
  /// without a change of the folder.
  fileprivate func hasFile(_ name: String, in folder: Folder) throws(WormholeError) -> Bool {
    do throws(Errno) {
      let path = "\(folder.rawValue)/\(name)"
      let status = try ignoring(.noSuchFile, root.descriptor.status(of: path))
      return status?.kind == (folder == .notices ? .regular : .directory)
    } catch {
      throw WormholeError(error, "list", path + "/" + folder.rawValue, in: self, folder.rawValue)
    }
  }
}
