internal import WormholeCLinux

/// The program that has started this one as a service, and wants to know when it is ready.
package enum ServiceManager {
  /// The variable with the address of the manager's socket.
  package static let variable = "NOTIFY_SOCKET"

  /// How often the manager wants to know that this process is alive; nil for never.
  ///
  /// The manager sets the variables for one process, and its children inherit them.
  package static var watchdog: Duration? {
    guard let text = Processes.environment("WATCHDOG_USEC"), let time = Int64(text), time > 0
    else { return nil }
    let process = Processes.environment("WATCHDOG_PID").flatMap { Int32($0) }
    guard process == nil || process == ProcessIdentity.current.process else { return nil }
    return .microseconds(time)
  }

  /// Tells the manager a state, such as `READY=1`; does nothing without a manager.
  ///
  /// A manager that does not listen holds up nothing: it has its own limit for the start.
  package static func notify(_ state: String) {
    guard let address = Processes.environment(variable), !address.isEmpty else { return }
    let (path, text) = (Array(address.utf8), Array(state.utf8))
    _ = try? perform(.send) { linux_notify(path, path.count, text, text.count) }
  }
}
