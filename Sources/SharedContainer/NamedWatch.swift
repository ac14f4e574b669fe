internal import Syscalls

/// A watch on whichever directory has a name: it goes on when that one is removed, moved away or
/// replaced.
///
/// Two directories are watched: the one of that name, and the one it lies in, which tells of the
/// name's coming and going. The first alone would not do. While anybody has a removed directory
/// open, and this process may well have, the kernel tells nothing of its end; and one that was
/// moved away is still there.
package final class NamedWatch: Sendable {
  package enum Signal: Sendable, Equatable {
    /// Names in the directory that something happened to; those that are UTF-8.
    case changed([String])
    /// Something may have happened to any name.
    case lookAgain
    /// Another directory has the name now, or one has that had gone.
    case replaced
    /// No directory has the name now.
    case removed
  }

  /// What is watched, and for what.
  struct Subject: Sendable {
    let container: Container
    /// As the log calls it.
    let title: String
    /// The directory it lies in, and what it is called there.
    let parent: OpenDirectory
    let name: String
    /// What is to be heard of the name itself.
    let above: InotifyMask
    /// What is to be heard of those in the directory.
    let inside: InotifyMask
    /// Whether it may pause: see ``NamedWatch/pause()``.
    var pauses = false
    /// Opens the directory; nil if none has the name.
    let open: @Sendable () throws(Errno) -> OpenDirectory?
  }

  private let subject: Subject
  private let handler: @Sendable (Signal) -> Void
  private let gate = CallGate()
  private let watches = Monitor(Watches())

  private struct Watches {
    var own: Watch?
    var above: Watch?
    /// The one that is watched.
    var directory: FileIdentity?
    var isStopped = false
  }

  /// Begins to watch.
  ///
  /// The handler looks for itself. It runs on the watcher's thread and must not wait.
  init(_ subject: Subject, _ handler: @escaping @Sendable (Signal) -> Void) throws(Errno) {
    self.subject = subject
    self.handler = handler
    let above = try watch(subject.parent, subject.above) { [weak self] signal in
      self?.hearFromAbove(signal)
    }
    watches.withLock { $0.above = above }
    do throws(Errno) {
      _ = try renew()
    } catch {
      stop()
      throw error
    }
  }

  private func watch(
    _ directory: OpenDirectory, _ mask: InotifyMask, pauses: Bool = false,
    _ handler: @escaping @Sendable (Watcher.Signal) -> Void
  ) throws(Errno) -> Watch {
    let environment = subject.container.options.environment
    return try Watcher.shared.watch(
      directory.descriptor, mask, pauses: pauses, mutants: environment.mutants,
      log: environment.log, handler)
  }

  /// Watches the directory that has the name now; false if none has.
  private func renew() throws(Errno) -> Bool {
    // Opened and registered under one lock: of two that do so at once, the later one is to stay.
    let (isThere, old) = try watches.withLock { watches throws(Errno) in
      guard !watches.isStopped else { return (false, Watch?.none) }
      let directory = try subject.open()
      var own: Watch?
      if let directory {
        own = try watch(directory, subject.inside, pauses: subject.pauses) { [weak self] signal in
          self?.hear(signal)
        }
      }
      let old = watches.own
      watches.own = own
      watches.directory = (try? directory?.descriptor.status()).map(FileIdentity.init)
      return (own != nil, old)
    }
    old?.stop()
    return isThere
  }

  private func hear(_ signal: Watcher.Signal) {
    switch signal {
    case .changed(let names):
      tell(.changed(names))
    case .lookAgain:
      subject.container.count { $0.rescans += 1 }
      tell(.lookAgain)
    case .gone:
      beginAnew()
    }
  }

  private func hearFromAbove(_ signal: Watcher.Signal) {
    switch signal {
    case .changed(let names):
      if names.contains(subject.name) { beginAnew() }
    case .lookAgain:
      if !watchesTheRightOne { beginAnew() }
    case .gone:
      subject.container.log(.error, "the watch on \(subject.title) has ended: its folder is gone")
    }
  }

  /// Whether the directory that is watched is the one of that name, or neither is there.
  private var watchesTheRightOne: Bool {
    let status = try? subject.parent.descriptor.status(of: subject.name)
    return watches.withLock { $0.directory } == status.map(FileIdentity.init)
  }

  private func beginAnew() {
    var isThere = false
    do throws(Errno) {
      isThere = try renew()
    } catch {
      subject.container.log(.error, "the watch on \(subject.title) has ended: \(error)")
    }
    tell(isThere ? .replaced : .removed)
  }

  private func tell(_ signal: Signal) { call { handler(signal) } }

  /// Makes a call as the handler is called: not once it has been stopped.
  func call(_ body: () -> Void) { gate.call(body) }

  /// Whether it looks again and again, because inotify cannot serve it.
  package var isPolling: Bool {
    watches.withLock { watches in
      [watches.own, watches.above].contains { $0?.isPolling ?? false }
    }
  }

  /// Has no names in the directory told, for a listener that will look of its own accord before it
  /// resumes; false if that cannot be.
  package func pause() -> Bool { watches.withLock { $0.own?.pause() ?? false } }

  /// Has everything told again; what happened meanwhile is not: look once this has returned.
  package func resume() { watches.withLock { $0.own?.resume() } }

  /// Ends it; once this has returned, the handler is not called again.
  package func stop() {
    gate.close()
    let (own, above) = watches.withLock { watches in
      watches.isStopped = true
      return (watches.own.take(), watches.above.take())
    }
    own?.stop()
    above?.stop()
    gate.drain()
  }

  deinit { stop() }
}
