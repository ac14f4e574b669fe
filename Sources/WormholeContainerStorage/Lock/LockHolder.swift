internal import WormholeSyscalls

/// The holder of a lock, as far as known in this process.
package struct LockHolder: Equatable, Sendable {
  package enum State: Sendable { case running, stopped, gone, unknown }

  package let process: Int32
  package let program: String
  package let state: State
  /// Whether the process seems to be about to end: a hint.
  package private(set) var isEnding = false

  /// A process, from the identity in its mark.
  ///
  /// - Parameters:
  ///   - namespace: the pid namespace in which the process ID is valid.
  ///   - started: distinguishes the process from a later process with the same ID.
  package init(process: Int32, namespace: UInt64, started: UInt64, program: String) {
    self.process = process
    self.program = program.harmless
    let here = ProcessIdentity.current
    guard namespace == here.namespace, here.namespace != 0 else {
      // An ID of another container's namespace is unknown here, and without /proc all IDs are.
      state = .unknown
      return
    }
    guard let status = ProcessStatus(of: process), status.started(at: started),
      !status.hasEnded
    else {
      state = .gone
      return
    }
    state = status.isStopped ? .stopped : .running
    isEnding = status.isEnding
  }

  init?(_ mark: HolderMark) {
    guard let process = mark.process else { return nil }
    self.init(
      process: process, namespace: mark.namespace, started: mark.started, program: mark.program)
  }

  /// Returns a remedy for a blocking holder.
  package var advice: String? {
    switch state {
    case .stopped: "resume the process with 'kill -CONT \(process)', or end the process"
    case .running, .gone, .unknown: nil
    }
  }
}

extension LockHolder: CustomStringConvertible {
  /// As in `'sleep' (process 4711, stopped)`.
  package var description: String {
    let condition =
      switch state {
      case .running: "running"
      case .stopped: "stopped"
      case .gone: "gone"
      case .unknown:
        ProcessIdentity.current.namespace == 0 ? "unknown without /proc" : "in another container"
      }
    return "'\(program)' (process \(process), \(condition))"
  }
}

extension String {
  /// Keeps letters, digits and a few signs: another tool may have written the text, and it is
  /// printed on terminals.
  var harmless: String { filter { $0.isLetter || $0.isNumber || "-_. +".contains($0) } }
}
