internal import Syscalls

extension Slot {
  /// Calls the handler whenever the value may have changed, and once at the beginning.
  ///
  /// The handler looks for itself: what it sees then is at least as new as what the call was for.
  /// It runs on a thread of the watcher's and must not wait. Nothing is made for it: of a slot that
  /// has no directory yet, the folder tells.
  ///
  /// - Parameter ended: is called if the container is no longer the one at its path.
  package func watch(
    _ handler: @escaping @Sendable () -> Void,
    ended: @escaping @Sendable (ContainerEnd) -> Void = { _ in }
  ) throws(WormholeError) -> NamedWatch {
    do throws(Errno) {
      // An exchange tells of both names it touches; the other one's directory is not watched.
      let path = [folder.rawValue, escaped]
      let watch = try NamedWatch(container, path, .movedTo, ended: ended) { signal in
        switch signal {
        case .changed(let names): if !names.contains(Slot.valueName) { return }
        case .lookAgain: break
        case .replaced, .gone: self.noteNewName()
        }
        handler()
      }
      watch.call(handler)
      return watch
    } catch {
      throw container.watchError(error, "watch \(title)", name)
    }
  }
}
