import SharedContainer
import Syscalls
import Wormhole

/// What a program is run inside of: an update of a container, or a lock of one.
///
/// It is handed down in the environment, so that what would wait for its own end is refused at
/// once, as the library refuses it within a process.
struct Enclosure {
  enum Kind {
    /// While it runs, no lock of the container can be had.
    case update
    /// While it runs, the lock of that name cannot be had.
    case lock(String)
  }

  private static let variable = "WORMHOLE_WITHIN"
  private let own: String

  init(_ kind: Kind, of hole: Wormhole) {
    own = Self.words(kind, of: hole)
  }

  /// What tells the program, and all that it starts.
  ///
  /// With who waits for it: what goes on after that has ended is inside of nothing.
  var setting: String {
    let identity = ProcessIdentity.current
    let outer = Processes.environment(Self.variable).map { $0 + "\n" } ?? ""
    return "\(Self.variable)=\(outer)\(identity.process) \(identity.started) \(own)"
  }

  /// Throws if the lock of that name is held by what this runs inside of.
  func refuseNesting(_ operation: String, _ subject: String) throws(WormholeError) {
    guard Self.encloses(own) else { return }
    throw WormholeError(
      .nested, operation, subject, because: "this runs inside of it already",
      hint: "it can be had again when the command that holds it has ended")
  }

  /// Throws if this runs inside an update of the container, which could wait for it for ever.
  static func refuseChange(of hole: Wormhole, _ verb: String) throws(WormholeError) {
    guard Processes.environment(variable) != nil, encloses(words(.update, of: hole)) else { return }
    throw WormholeError(
      .nested, "\(verb) in container", hole.container.path,
      because: "this runs inside an update of the same container, which waits for it to end",
      hint: "write the new value to standard output, or do it after the update")
  }

  private static func words(_ kind: Kind, of hole: Wormhole) -> String {
    switch kind {
    case .update: "\(hole.container.id) update"
    case .lock(let name):
      "\(hole.container.id) lock \((try? Container.escape(name)) ?? "")"
    }
  }

  private static func encloses(_ words: String) -> Bool {
    let lines = Processes.environment(variable)?.split(separator: "\n") ?? []
    return lines.contains { line in
      let parts = line.split(separator: " ", maxSplits: 2)
      guard parts.count == 3, parts[2] == words, let process = Int32(parts[0]) else {
        return false
      }
      // It may have ended, and left this process running.
      return UInt64(parts[1]).flatMap { ProcessStatus(of: process)?.started(at: $0) } ?? false
    }
  }
}
