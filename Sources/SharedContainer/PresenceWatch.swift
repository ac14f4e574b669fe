internal import Syscalls

/// The watch on one member's presence and profile.
///
/// The member need never have joined, and watching makes no directory: the one that members lie in
/// is watched for the name, and the member's own once it is there.
///
/// The kernel tells of a closed file shortly *before* it takes back the locks on it. So whoever is
/// told that a presence was let go, and finds it locked, looks again a little later.
package final class PresenceWatch: Sendable {
  package enum Signal: Sendable, Equatable {
    /// A file that presence is held by was closed.
    case released
    /// Something may have happened to the member.
    case changed
  }

  private let container: Container
  private let name: String
  private let escaped: String
  private let handler: @Sendable (Signal) -> Void
  private let gate = CallGate()
  private let watches = Monitor(Watches())

  private struct Watches {
    var own: Watch?
    var above: Watch?
    /// The member's own directory, as it is watched.
    var directory: FileIdentity?
    var isStopped = false
  }

  fileprivate init(
    _ container: Container, _ name: String, _ escaped: String,
    _ handler: @escaping @Sendable (Signal) -> Void
  ) {
    self.container = container
    self.name = name
    self.escaped = escaped
    self.handler = handler
  }

  fileprivate func begin() throws(Errno) {
    let environment = container.options.environment
    let above = try container.folder(.members)
    let fresh = try Watcher.shared.watch(
      above.descriptor, [.created, .movedTo, .deleted, .movedFrom], mutants: environment.mutants,
      log: environment.log
    ) { [weak self] signal in self?.hearFromAbove(signal) }
    keep(fresh, at: \.above)
    do throws(Errno) {
      try beginOwn()
    } catch {
      stop()
      throw error
    }
  }

  /// Watches the member's own directory, if there is one.
  private func beginOwn() throws(Errno) {
    let environment = container.options.environment
    do throws(Errno) {
      let above = try container.folder(.members)
      let own = try above.descriptor.open(escaped, [.readOnly, .directory])
      let fresh = try Watcher.shared.watch(
        own, [.closedAfterWriting, .movedTo], mutants: environment.mutants, log: environment.log
      ) { [weak self] signal in self?.hear(signal) }
      let directory = FileIdentity(try own.status())
      keep(fresh, at: \.own)
      watches.withLock { $0.directory = directory }
    } catch {
      // Not there yet, or something else in its place: the watch above tells of what comes.
      guard [.noSuchFile, .notADirectory, .tooManyLinks].contains(error) else { throw error }
      keep(nil, at: \.own)
      watches.withLock { $0.directory = nil }
    }
  }

  /// Whether the directory that is watched is the one of that name, or neither is there.
  private var watchesTheRightOne: Bool {
    let status = (try? container.folder(.members))
      .flatMap { try? $0.descriptor.status(of: escaped) }
    return watches.withLock { $0.directory } == status.map(FileIdentity.init)
  }

  /// Takes a new watch in the place of the one before it.
  private func keep(_ fresh: Watch?, at place: WritableKeyPath<Watches, Watch?>) {
    let old = watches.withLock { watches -> Watch? in
      if watches.isStopped { return fresh }
      let old = watches[keyPath: place]
      watches[keyPath: place] = fresh
      return old
    }
    old?.stop()
  }

  private func hear(_ signal: Watcher.Signal) {
    switch signal {
    case .changed(let names):
      if names.contains(MemberDirectory.presenceName) {
        call(.released)
      } else if names.contains(MemberDirectory.profileName) {
        call(.changed)
      }
    case .lookAgain:
      container.count { $0.rescans += 1 }
      call(.changed)
    case .gone:
      beginAnew()
    }
  }

  private func hearFromAbove(_ signal: Watcher.Signal) {
    switch signal {
    case .changed(let names):
      if names.contains(escaped) { beginAnew() }
    case .lookAgain:
      container.count { $0.rescans += 1 }
      if watchesTheRightOne { call(.changed) } else { beginAnew() }
    case .gone:
      container.log(.error, "the watch on member '\(name)' has ended: its folder is gone")
    }
  }

  private func beginAnew() {
    if let failure = Errno.of({ () throws(Errno) in try beginOwn() }) {
      container.log(.error, "the watch on member '\(name)' has ended: \(failure)")
    }
    call(.changed)
  }

  private func call(_ signal: Signal) { gate.call { handler(signal) } }

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

extension Container {
  /// Calls the handler whenever a member may have joined, left, died, or changed what it tells of
  /// itself; also one that has never joined.
  ///
  /// The handler looks for itself. It runs on the watcher's thread and must not wait.
  package func watchPresence(
    of name: String, _ handler: @escaping @Sendable (PresenceWatch.Signal) -> Void
  ) throws(WormholeError) -> PresenceWatch {
    let watch = PresenceWatch(self, name, try escape(name), handler)
    do throws(Errno) {
      try watch.begin()
    } catch {
      throw WormholeError(error, "watch member", name)
    }
    return watch
  }
}
