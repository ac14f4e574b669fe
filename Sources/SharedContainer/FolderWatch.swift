internal import Syscalls

/// A watch on the names in one of a container's folders.
///
/// A listing is no snapshot, so names are told as they are noticed, each once; and the folder is
/// listed after the watch is registered, so that none is missed for good.
package final class FolderWatch: Sendable {
  package enum Change: Sendable, Equatable {
    case came(String)
    case went(String)
  }

  private let container: Container
  private let folder: Container.Folder
  private let handler: @Sendable (Change) -> Void
  private let known = Monitor<Set<String>>([])
  private let watch = Monitor<Watch?>(nil)
  private let gate = CallGate()

  fileprivate init(
    _ container: Container, _ folder: Container.Folder,
    _ handler: @escaping @Sendable (Change) -> Void
  ) {
    self.container = container
    self.folder = folder
    self.handler = handler
  }

  fileprivate func begin() throws(WormholeError) {
    let environment = container.options.environment
    let mutants = environment.mutants
    let early = mutants.has(.trustEmptyListing) ? try container.names(in: folder) : nil
    do throws(Errno) {
      let directory = try container.folder(folder)
      let watch = try Watcher.shared.watch(
        directory.descriptor, [.created, .movedTo, .movedFrom, .deleted],
        mutants: environment.mutants, log: environment.log
      ) { [weak self] _ in self?.look() }
      self.watch.withLock { $0 = watch }
    } catch {
      throw WormholeError(error, "watch", folder.rawValue)
    }
    if early?.isEmpty == true { return }
    look()
  }

  private func look() {
    // Listed and told under one lock: an older listing must not come after a newer one, or it would
    // take back what that one told.
    known.withLock { known in
      do throws(WormholeError) {
        let now = Set(try container.names(in: folder))
        for name in now.subtracting(known).sorted() { gate.call { handler(.came(name)) } }
        for name in known.subtracting(now).sorted() { gate.call { handler(.went(name)) } }
        known = now
      } catch {
        container.log(.warning, "\(error)")
      }
    }
  }

  /// Ends it; once this has returned, the handler is not called again.
  package func stop() {
    gate.close()
    watch.withLock { $0.take() }?.stop()
    gate.drain()
  }

  deinit { stop() }
}

extension Container {
  /// Tells of the names that are in the folder, and of each that comes or goes.
  package func watchNames(
    in folder: Folder, _ handler: @escaping @Sendable (FolderWatch.Change) -> Void
  ) throws(WormholeError) -> FolderWatch {
    let watch = FolderWatch(self, folder, handler)
    try watch.begin()
    return watch
  }
}
