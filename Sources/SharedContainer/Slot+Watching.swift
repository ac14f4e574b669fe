internal import Syscalls

extension Slot {
  /// Calls the handler whenever the value may have changed, and once at the beginning.
  ///
  /// The handler looks for itself: what it sees then is at least as new as what the call was for.
  /// It runs on the watcher's thread and must not wait. A directory removed by hand is made anew,
  /// so that the watch goes on.
  package func watch(
    _ handler: @escaping @Sendable () -> Void
  ) throws(WormholeError) -> NamedWatch {
    do throws(Errno) {
      // An exchange tells of both names it touches; the other one's directory is not watched.
      let subject = NamedWatch.Subject(
        container: container, title: "'\(name)'", parent: try container.folder(folder),
        name: escaped, above: [.deleted, .movedFrom], inside: .movedTo
      ) { () throws(Errno) in
        self.forgetDirectory()
        return OpenDirectory(try self.openDirectory(making: true).descriptor.duplicate())
      }
      let watch = try NamedWatch(subject) { signal in
        if case .changed(let names) = signal, !names.contains(Slot.valueName) { return }
        handler()
      }
      watch.call(handler)
      return watch
    } catch {
      throw WormholeError(error, "watch \(title)", name)
    }
  }
}
