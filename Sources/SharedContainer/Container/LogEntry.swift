internal import Syscalls

/// How much a log message matters, from least to most.
@nonexhaustive
public enum LogLevel: Int, Comparable, Sendable, CaseIterable {
  /// For whoever follows each step.
  case trace
  /// For whoever looks for a mistake.
  case debug
  /// What happens in the course of things.
  case info
  /// What happens rarely, and is in order.
  case notice
  /// What somebody should look at some time.
  case warning
  /// What went wrong, and nobody else is told of.
  case error
  /// What went wrong for good.
  case critical

  /// Whether one matters less than the other.
  public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// Something that has happened inside, for a program to pass on to its own log.
///
/// Later versions may tell more of it.
public struct LogEntry: Sendable, CustomStringConvertible {
  /// How much it matters.
  public var level: LogLevel
  /// What has happened, as a sentence for people: it may change.
  public var text: String
  /// The path of the container that it has happened in.
  public var container: String?
  /// The channel that it is about.
  public var channel: String?
  /// The suite of defaults that it is about.
  public var suite: String?
  /// The member that it is about.
  public var member: String?
  /// The message that it is about, by its sender's name for it.
  public var message: String?
  /// What kind of failure it is, if it is one.
  public var code: WormholeError.Code?
  /// The system's error number, where one was the cause.
  public var errno: Int32?

  /// Something that has happened, as a program's test may tell it to its own log.
  public init(_ level: LogLevel, _ text: String) {
    self.level = level
    self.text = text
  }

  /// All that is known but level and text, by the names of the properties.
  public var fields: [String: String] {
    var fields: [String: String] = [:]
    fields["container"] = container
    fields["channel"] = channel
    fields["suite"] = suite
    fields["member"] = member
    fields["message"] = message
    fields["code"] = code?.rawValue
    fields["errno"] = errno.map { "\($0)" }
    return fields
  }

  /// The level and the text.
  public var description: String { "\(level): \(text)" }
}

/// What is told of what happens inside, for a program to pass on to its own log.
public typealias LogHook = @Sendable (_ entry: LogEntry) -> Void

/// What an entry is about, inside of a container.
package struct LogSubject: Sendable {
  package var channel: String?
  package var suite: String?
  package var member: String?
  package var message: String?

  package init(
    channel: String? = nil, suite: String? = nil, member: String? = nil, message: String? = nil
  ) {
    (self.channel, self.suite, self.member, self.message) = (channel, suite, member, message)
  }
}

extension LogEntry {
  /// Takes the number and the meaning of what has caused it, as far as it has any.
  package mutating func take(_ cause: any Error) {
    switch cause {
    case let error as WormholeError: (code, errno) = (error.code, error.errno)
    case let error as Errno:
      (code, errno) = (WormholeError(error, "", "").code, error.rawValue)
    default: break
    }
  }
}

extension Container {
  /// Tells the program of something that is nobody's error.
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

  /// Tells the program of an error that nobody else is told of.
  package func log(
    _ level: LogLevel, _ error: WormholeError, about subject: LogSubject = LogSubject()
  ) {
    log(level, "\(error)", about: subject, because: error)
  }
}

extension Slot {
  /// What the names of suites begin with, in `system/`.
  package static let suitePrefix = "defaults."

  /// How the log names it.
  package var logSubject: LogSubject {
    if folder == .channels { return LogSubject(channel: name) }
    let suites = Self.suitePrefix
    return name.utf8.starts(with: suites.utf8)
      ? LogSubject(suite: String(name.utf8.dropFirst(suites.utf8.count))) : LogSubject()
  }
}
