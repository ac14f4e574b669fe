internal import WormholeSyscalls

extension Slot {
  /// Calls the handler whenever the value may have changed, and once at the start.
  ///
  /// The handler reads the value itself: the value is at least as new as the change that caused the
  /// call. The handler runs on a thread of the watcher and must not wait. Watching makes no
  /// directory: if the slot has none yet, the watch of the folder reports a new one.
  ///
  /// - Parameter ended: called when the container is no longer the one at its path.
  package func watch(
    _ handler: @escaping @Sendable () -> Void,
    ended: @escaping @Sendable (ContainerEnd) -> Void = { _ in }
  ) throws(WormholeError) -> NamedWatch {
    try container.watching("watch \(title)", name, "\(folder.rawValue)/\(escaped)") {
      () throws(Errno) -> NamedWatch in
      // An exchange reports both names; the directory of the other name is not watched.
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
    }
  }
}
