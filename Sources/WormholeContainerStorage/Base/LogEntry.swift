internal import WormholeSyscalls

/// The importance of a log message, from least to most.
@nonexhaustive
public enum LogLevel: Int, Comparable, Sendable, CaseIterable {
  /// For following each step.
  case trace
  /// For finding mistakes.
  case debug
  /// Usual events.
  case info
  /// Rare events that are no problem.
  case notice
  /// Events that a person should examine some time.
  case warning
  /// Errors that no caller receives.
  case error
  /// Permanent failures.
  case critical

  /// Whether the first level is less important than the second.
  public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// An internal event, for a program to pass on to its own log.
///
/// Later versions may add properties.
public struct LogEntry: Sendable, CustomStringConvertible {
  /// The importance of the event.
  public var level: LogLevel
  /// The event as a sentence for people: it may change.
  public var text: String
  /// The path of the container in which the event happened.
  public var container: String?
  /// The channel of the event.
  public var channel: String?
  /// The suite of defaults of the event.
  public var suite: String?
  /// The member of the event.
  public var member: String?
  /// The message of the event, by its sender's identifier.
  public var message: String?
  /// The code of the failure, if the event is one.
  public var code: WormholeError.Code?
  /// The system's error number, if a system call failed.
  public var errno: Int32?

  /// Makes an entry, for tests of a program's log.
  public init(_ level: LogLevel, _ text: String) {
    self.level = level
    self.text = text
  }

  /// All known properties except level and text, by their names.
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

/// A handler of internal events, for a program to pass on to its own log.
public typealias LogHook = @Sendable (_ entry: LogEntry) -> Void

/// The objects in a container that an entry concerns.
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
  /// Takes the code and the error number of the cause, as far as it has any.
  package mutating func take(_ cause: any Error) {
    switch cause {
    case let error as WormholeError: (code, errno) = (error.code, error.errno)
    case let error as Errno:
      (code, errno) = (WormholeError(error, "", "").code, error.rawValue)
    default: break
    }
  }
}
