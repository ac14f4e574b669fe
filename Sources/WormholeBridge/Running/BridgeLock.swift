package import Wormhole
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Held by the process that serves a container's bridge, and released with its end.
package final class BridgeLock: Sendable {
  private let file: Descriptor
  private static let name = Container.bridgeLockName

  private init(_ folder: BridgeFolder) throws(Errno) {
    file = try folder.directory.descriptor.open(
      Self.name, [.readWrite, .create], mode: 0o600)
  }

  /// Nil while another process holds it.
  static func take(_ folder: BridgeFolder) throws(WormholeError) -> BridgeLock? {
    try naming("lock", "bridge") { () throws(Errno) in
      let lock = try BridgeLock(folder)
      return try lock.file.tryPresenceLock() ? lock : nil
    }
  }

  /// Waits until no other process holds the lock; nil if the wait was ended.
  ///
  /// - Parameter waiting: called once, if another process holds it.
  package static func take(
    _ container: SharedContainer, _ news: BridgeNews, waiting: () -> Void = {}
  ) throws -> BridgeLock? {
    let folder = try BridgeFolder(of: container.storage)
    var isFirst = true
    while true {
      if let lock = try take(folder) { return lock }
      if isFirst { waiting() }
      isFirst = false
      // No call waits for such a lock and for the end, too.
      try news.wake.wait(until: .now + .milliseconds(100))
      if news.take().isOver { return nil }
    }
  }

  /// Whether a process holds the lock.
  static func isHeld(_ folder: BridgeFolder) throws(WormholeError) -> Bool {
    try naming("look at", "bridge/\(name)") { () throws(Errno) in
      let directory = folder.directory
      return try ignoring(
        .noSuchFile, directory.descriptor.open(name, [.readOnly]).isPresenceLocked()) ?? false
    }
  }
}
