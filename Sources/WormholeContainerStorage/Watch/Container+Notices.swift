internal import WormholeSyscalls

/// Names that can be posted: a notice has no content, and only the time of the last post is stored.
///
/// `notices/<name>` is an empty file, and a post touches it. Inotify notifies watchers; if inotify
/// is not available, watchers compare the file's time.
extension Container {
  /// Notifies all watchers of the name, in every process, including this one.
  package func post(_ name: String) throws(WormholeError) {
    let escaped = try Self.escape(name)
    try watching("post notice", name, Folder.notices.rawValue) { () throws(Errno) in
      // Another tool may have removed the folder that was opened before.
      let folder = OpenDirectory(try openFolder(.notices))
      // The creation of the file notifies watchers as well, so a touch is not needed.
      if try make(escaped, in: folder) { return }
      try folder.descriptor.open(escaped, [.writeOnly, .nonBlocking]).touch()
    }
  }

  /// Makes the file, with the mode for all users who may write to it; false if the file exists.
  private func make(_ name: String, in folder: OpenDirectory) throws(Errno) -> Bool {
    try ignoring(.fileExists) { () throws(Errno) -> Void in
      if options.sharing == .group {
        // Setting the mode under the final name would notify watchers a second time.
        try staging.publish([], sync: false, as: name) { folder }
      } else {
        _ = try folder.descriptor.open(name, .writeOnlyNew, mode: 0o600)
      }
    } != nil
  }

  /// Calls the handler whenever the name has been posted: once for several posts in quick
  /// succession, and never for earlier posts.
  ///
  /// The handler runs on the watcher's thread and must not wait.
  ///
  /// - Parameter ended: called when the container is no longer the one at its path.
  package func watchNotice(
    _ name: String, _ handler: @escaping @Sendable () -> Void,
    ended: @escaping @Sendable (ContainerEnd) -> Void = { _ in }
  ) throws(WormholeError) -> NamedWatch {
    let escaped = try Self.escape(name)
    let posted = Monitor(
      LastPost(postedTime(escaped), now: options.environment.sinceEpoch()))
    return try watching("watch notice", name, Folder.notices.rawValue) { () throws(Errno) in
      try NamedWatch(
        self, [Folder.notices.rawValue], [.attributes, .created, .movedTo], name: escaped,
        ended: ended
      ) { [weak self] signal in
        // Updated in any case, or the next check would take the post for a new one.
        let isNews = posted.withLock { $0.look(at: self?.postedTime(escaped) ?? 0) }
        if case .changed = signal { return handler() }
        if isNews { handler() }
      }
    }
  }

  /// The time of the last post; 0 if the name was never posted.
  private func postedTime(_ escaped: String) -> Int64 {
    (try? root.descriptor.status(of: "\(Folder.notices.rawValue)/\(escaped)"))?.modified ?? 0
  }
}

/// The time of the last known post, for checks without a notice from the kernel.
///
/// Some file systems store whole seconds, or every second one. A later post within that time leaves
/// the same time, so such a time is taken for another post once no more posts can leave it.
private struct LastPost {
  /// The longest step between two times of a file, in nanoseconds.
  private static let step: Int64 = 2_000_000_000

  private var time: Int64
  /// When no further post can leave this time; nil if that moment has passed.
  private var isSettledAt: Instant?

  /// - Parameter now: nanoseconds since 1970.
  init(_ time: Int64, now: Int64) {
    self.time = time
    // The file may have been posted long ago.
    let isYoung = now &- time < Self.step
    if isYoung { isSettledAt = Self.settled(time) }
  }

  /// Whether the name has been posted since the last check, or may have been.
  mutating func look(at time: Int64) -> Bool {
    if time != self.time {
      self.time = time
      isSettledAt = Self.settled(time)
      return time != 0
    }
    guard let moment = isSettledAt, Instant.now >= moment else { return false }
    isSettledAt = nil
    return true
  }

  private static func settled(_ time: Int64) -> Instant? {
    time != 0 && time % 1_000_000_000 == 0 ? Instant.now + .nanoseconds(step) : nil
  }
}
