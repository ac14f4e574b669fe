extension Container {
  /// Logs an event that is no caller's error.
  package func log(
    _ level: LogLevel, _ text: String, about subject: LogSubject = LogSubject(),
    because cause: (any Error)? = nil
  ) {
    var entry = LogEntry(level, text)
    entry.container = path
    entry.channel = subject.channel
    entry.suite = subject.suite
    entry.member = subject.member
    entry.message = subject.message
    if let cause { entry.take(cause) }
    options.environment.log(entry)
  }

  /// Logs an error that no caller receives.
  package func log(
    _ level: LogLevel, _ error: WormholeError, about subject: LogSubject = LogSubject()
  ) {
    log(level, "\(error)", about: subject, because: error)
  }
}
