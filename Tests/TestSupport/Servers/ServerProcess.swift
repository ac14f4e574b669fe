internal import Synchronization
internal import WormholeSyscalls

/// One process of the program `nats-server`, which may be killed and started again.
package final class ServerProcess: Sendable {
  package let name: String
  private let command: [String]
  private let log: String
  private let running = Mutex<Running?>(nil)

  /// - Parameters:
  ///   - command: the program, perhaps behind another program that becomes it, and its arguments.
  ///   - log: the file that the server's configuration names as its log.
  package init(name: String, command: [String], log: String) {
    self.name = name
    self.command = command
    self.log = log
  }

  deinit { try? kill() }

  /// The process ID; nil while the server does not run.
  package var process: Int32? {
    running.withLock { $0.flatMap { $0.hasEnded ? nil : $0.child.process } }
  }

  /// Starts the server, which must not run.
  package func start() throws {
    try running.withLock {
      guard $0?.hasEnded != false else { throw ServerFailure(description: "\(name) runs") }
      $0 = try Running(command[0], Array(command.dropFirst()))
    }
  }

  /// Kills the server, if it runs, and waits for the end of its process.
  package func kill() throws {
    try running.withLock {
      guard let server = $0 else { return }
      // A process that has ended by itself gets no signal.
      if !server.hasEnded { try? server.child.send(.kill) }
      _ = try server.outcome()
      $0 = nil
    }
  }

  /// Suspends the server, and waits until it is suspended.
  package func suspend() throws {
    let server = try current()
    try server.child.send(.stop)
    try server.waitUntilStopped()
  }

  package func resume() throws { try current().child.send(.go) }

  private func current() throws -> Running {
    guard let server = running.withLock({ $0 }), !server.hasEnded else {
      throw ServerFailure(description: "\(name) does not run")
    }
    return server
  }

  /// Waits until the server does what the condition asks for; an error of the condition, as of a
  /// connection that is refused, is a reason to wait.
  ///
  /// Throws with the end of the server's log if the server ends, or takes too long.
  package func waitUntil(
    _ what: String, within time: Duration = patience, _ condition: () throws -> Bool
  ) throws {
    var last: (any Error)?
    do {
      try eventually("\(name) \(what)", within: time) {
        guard process != nil else {
          throw ServerFailure(description: "\(name) has ended")
        }
        do { return try condition() } catch {
          last = error
          return false
        }
      }
    } catch {
      let cause = last.map { " (\($0))" } ?? ""
      throw ServerFailure(description: "\(error)\(cause)\n\(lastLines)")
    }
  }

  /// The end of the log, and of what the server wrote before it had a log.
  package var lastLines: String {
    let written = (try? running.withLock { try $0?.errors }) ?? ""
    let file = try? Descriptor.open(path: log, [.readOnly]).contents()
    let lines = (written + String(decoding: file ?? [], as: UTF8.self)).split(separator: "\n")
    return lines.suffix(20).joined(separator: "\n")
  }
}
