import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The enclosing operation of a program: an update of a container, or a lock of a container.
///
/// Child processes inherit the enclosure in the environment. So an operation that would wait for
/// its own end is refused at once, as by the library within a process.
struct EnclosingLock {
  enum Kind {
    /// While the program runs, no lock of the container is available.
    case update
    /// While the program runs, the lock of that name is not available.
    case lock(String)
  }

  private static let variable = "WORMHOLE_WITHIN"
  private let own: String

  init(_ kind: Kind, of container: SharedContainer) {
    own = Self.words(kind, of: container)
  }

  /// The environment variable for the program and all its child processes.
  ///
  /// The variable contains the waiting process: a program is not enclosed any more after the end of
  /// the waiting process.
  var setting: String {
    let identity = ProcessIdentity.current
    let outer = Processes.environment(Self.variable).map { $0 + "\n" } ?? ""
    return "\(Self.variable)=\(outer)\(identity.process) \(identity.started) \(own)"
  }

  /// Throws if an enclosing operation holds the lock of that name.
  func refuseNesting(_ operation: String, _ subject: String) throws(WormholeError) {
    guard Self.encloses(own) else { return }
    throw WormholeError(
      .nested, operation, subject, because: "this command runs inside the same lock",
      hint: "the lock is free when the command that holds the lock has ended")
  }

  /// Throws inside an update of the container: the update and the present command could wait for
  /// each other for ever.
  static func refuseChange(of container: SharedContainer, _ verb: String) throws(WormholeError) {
    guard Processes.environment(variable) != nil, encloses(words(.update, of: container)) else {
      return
    }
    throw WormholeError(
      .nested, "\(verb) in container", container.storage.path,
      because: "this command runs inside an update of the same container and would wait for it",
      hint: "write the new value to standard output, or run this command after the update")
  }

  private static func words(_ kind: Kind, of container: SharedContainer) -> String {
    switch kind {
    case .update: "\(container.storage.id) update"
    case .lock(let name):
      "\(container.storage.id) lock \((try? Container.escape(name)) ?? "")"
    }
  }

  private static func encloses(_ words: String) -> Bool {
    let lines = Processes.environment(variable)?.split(separator: "\n") ?? []
    return lines.contains { line in
      let parts = line.split(separator: " ", maxSplits: 2)
      guard parts.count == 3, parts[2] == words, let process = Int32(parts[0]) else {
        return false
      }
      // The process may have ended, and left this process running.
      return UInt64(parts[1]).flatMap { ProcessStatus(of: process)?.started(at: $0) } ?? false
    }
  }
}
