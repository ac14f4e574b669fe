internal import Syscalls

/// Names that can be posted: nothing is carried, nothing kept but when it was last posted.
///
/// `notices/<name>` is an empty file, and to post is to touch it. Who watches is told by inotify;
/// where that cannot serve, by the file's time.
extension Container {
  /// Tells all who watch the name, in every process, this one too.
  package func post(_ name: String) throws(WormholeError) {
    let escaped = try Self.escape(name)
    do throws(Errno) {
      let folder = try noticesFolder()
      // What a first posting makes is noticed as well, so it need not be touched.
      if try make(escaped, in: folder.descriptor) { return }
      try folder.descriptor.open(escaped, [.writeOnly, .nonBlocking]).touch()
    } catch {
      throw WormholeError(error, "post notice", name, in: self, Folder.notices.rawValue)
    }
  }

  /// The file, for whoever may write to it; false if it is there already.
  private func make(_ name: String, in folder: borrowing Descriptor) throws(Errno) -> Bool {
    do throws(Errno) {
      if options.sharing == .group {
        // Given its mode under its name it would be noticed a second time.
        try staging.place(
          UnsafeRawBufferPointer(start: nil, count: 0), sync: false, in: folder, as: name)
      } else {
        _ = try folder.open(name, [.writeOnly, .create, .exclusive], mode: 0o600)
      }
      return true
    } catch {
      guard error == .fileExists else { throw error }
      return false
    }
  }

  /// Opened anew, in case it was removed by hand and made again.
  private func noticesFolder() throws(Errno) -> OpenDirectory {
    OpenDirectory(try openFolder(.notices))
  }

  /// Calls the handler whenever the name has been posted: once for several times in quick
  /// succession, and never for what was posted before.
  ///
  /// It runs on the watcher's thread and must not wait.
  ///
  /// - Parameter ended: is called if the container is no longer the one at its path.
  package func watchNotice(
    _ name: String, _ handler: @escaping @Sendable () -> Void,
    ended: @escaping @Sendable (ContainerEnd) -> Void = { _ in }
  ) throws(WormholeError) -> NamedWatch {
    let escaped = try Self.escape(name)
    // When it was last seen to be posted, for looks without word from the kernel.
    let posted = Monitor(postedTime(escaped))
    do throws(Errno) {
      return try NamedWatch(
        self, [Folder.notices.rawValue], [.attributes, .created, .movedTo], name: escaped,
        ended: ended
      ) { [weak self] signal in
        // Looked at in any case, or the next look would take it for another.
        let isNews = posted.withLock { posted in
          let now = self?.postedTime(escaped) ?? 0
          defer { posted = now }
          return now != posted && now != 0
        }
        if case .changed = signal { return handler() }
        if isNews { handler() }
      }
    } catch {
      throw watchError(error, "watch notice", name)
    }
  }

  /// When a name was last posted; 0 if it never was.
  private func postedTime(_ escaped: String) -> Int64 {
    (try? root.status(of: "\(Folder.notices.rawValue)/\(escaped)"))?.modified ?? 0
  }
}
