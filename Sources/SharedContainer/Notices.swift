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
      throw WormholeError(error, "post notice", name)
    }
  }

  /// The file, for whoever may write to it; false if it is there already.
  private func make(_ name: String, in folder: borrowing Descriptor) throws(Errno) -> Bool {
    do throws(Errno) {
      let file = try folder.open(name, [.writeOnly, .create, .exclusive], mode: 0o600)
      if options.sharing == .group { try file.setMode(options.sharing.fileMode) }
      return true
    } catch {
      guard error == .fileExists else { throw error }
      return false
    }
  }

  /// Opened anew, in case it was removed by hand and made again.
  fileprivate func noticesFolder() throws(Errno) -> OpenDirectory {
    OpenDirectory(
      try ContainerOpening(path: path, options: options, mayCreate: true)
        .ensureDirectory(.notices, in: root))
  }

  /// Calls the handler whenever the name has been posted: once for several times in quick
  /// succession, and never for what was posted before.
  ///
  /// It runs on the watcher's thread and must not wait.
  package func watchNotice(
    _ name: String, _ handler: @escaping @Sendable () -> Void
  ) throws(WormholeError) -> NoticeWatch {
    let watch = NoticeWatch(self, name, try Self.escape(name), handler)
    do throws(Errno) {
      try watch.begin()
    } catch {
      throw WormholeError(error, "watch notice", name)
    }
    return watch
  }
}

/// The watch on one notice.
package final class NoticeWatch: Sendable {
  private let container: Container
  private let name: String
  private let escaped: String
  private let handler: @Sendable () -> Void
  private let state = Monitor(State())

  private struct State {
    var folder: OpenDirectory?
    var watch: Watch?
    var isStopped = false
    /// When the notice was last seen to be posted, for looks without word from the kernel.
    var posted: Int64 = 0
  }

  fileprivate init(
    _ container: Container, _ name: String, _ escaped: String,
    _ handler: @escaping @Sendable () -> Void
  ) {
    self.container = container
    self.name = name
    self.escaped = escaped
    self.handler = handler
  }

  fileprivate func begin() throws(Errno) {
    let folder = try container.noticesFolder()
    let posted = Self.time(of: escaped, in: folder)
    state.withLock { state in
      state.folder = folder
      state.posted = posted
    }
    let environment = container.options.environment
    let fresh = try Watcher.shared.watch(
      folder.descriptor, [.attributes, .created, .movedTo], mutants: environment.mutants,
      log: environment.log
    ) { [weak self] signal in self?.hear(signal) }
    let isLate = state.withLock { state in
      if !state.isStopped { state.watch = fresh }
      return state.isStopped
    }
    if isLate { fresh.stop() }
  }

  private static func time(of escaped: String, in folder: OpenDirectory) -> Int64 {
    (try? folder.descriptor.status(of: escaped).modified) ?? 0
  }

  private func hear(_ signal: Watcher.Signal) {
    switch signal {
    case .changed(let names):
      guard names.contains(escaped) else { return }
      // Noted, or the next look would take it for another.
      _ = isNews()
      handler()
    case .lookAgain:
      container.count { $0.rescans += 1 }
      if isNews() { handler() }
    case .gone:
      if let failure = Errno.of({ () throws(Errno) in try begin() }) {
        container.log(.error, "the watch on notice '\(name)' has ended: \(failure)")
      }
    }
  }

  private func isNews() -> Bool {
    state.withLock { state in
      guard let folder = state.folder else { return false }
      let posted = Self.time(of: escaped, in: folder)
      defer { state.posted = posted }
      return posted != state.posted && posted != 0
    }
  }

  /// Ends it; once this has returned, the handler is not called again.
  package func stop() {
    let ended = state.withLock { state in
      state.isStopped = true
      return state.watch.take()
    }
    ended?.stop()
  }

  deinit { stop() }
}
