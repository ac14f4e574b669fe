import WormholeContainerStorage
import WormholeSyscalls

/// What a service manager knows of a command that waits for messages or requests.
enum ServiceReport {
  /// States that the command is ready, and from now on, as often as the manager asks, that it is
  /// alive.
  ///
  /// Each statement that the command is alive is made on a thread that notifies of changes, like
  /// the handlers of messages: without such a thread, there is no statement, and the manager ends
  /// the command. A program that the command runs does not count, however long it takes.
  static func begin() throws {
    ServiceManager.notify("READY=1")
    guard let limit = ServiceManager.watchdog else { return }
    let alive = Worker()
    alive.begin { ServiceManager.notify("WATCHDOG=1") }
    try naming("notify", "the service manager") { () throws(Errno) in
      try Thread("watchdog") {
        while true {
          alive.trigger()
          Thread.pause(limit / 3)
        }
      }.detach()
    }
  }

  static func end() { ServiceManager.notify("STOPPING=1") }
}
