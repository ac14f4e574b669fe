internal import Syscalls

/// Whose lock it is, as far as it can be known from here.
package struct LockHolder: Equatable, Sendable {
  package enum State: Sendable { case running, stopped, gone, unknown }

  package let process: Int32
  package let program: String
  package let state: State
  /// Whether it seems to be about to end: a hint.
  package private(set) var isEnding = false

  /// A process by what it has written of itself.
  ///
  /// - Parameters:
  ///   - namespace: where its number means something.
  ///   - started: what tells it from a later process of the same number.
  package init(process: Int32, namespace: UInt64, started: UInt64, program: String) {
    self.process = process
    self.program = program.harmless
    let here = ProcessIdentity.current
    guard namespace == here.namespace, here.namespace != 0 else {
      // A number of another container's means nobody here, and without /proc none does.
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

  /// What can be done about one that is in the way.
  package var advice: String? {
    switch state {
    case .stopped: "let it go on with 'kill -CONT \(process)', or end it"
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
  /// What a foreign hand may have written, and goes to terminals: letters, digits and a few signs
  /// are left.
  var harmless: String { filter { $0.isLetter || $0.isNumber || "-_. +".contains($0) } }
}
