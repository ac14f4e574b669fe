public import Foundation

/// A log that writes each message to standard error, in one line.
///
/// Messages of every level are written. `OS_ACTIVITY_MODE=disable` in the environment turns the log
/// off, as in Xcode.
public struct Logger: Sendable {
  private let label: String

  /// Creates a log without a label.
  public init() { label = "" }

  /// Creates a log whose lines start with a subsystem and a category.
  public init(subsystem: String, category: String) { label = "\(subsystem):\(category)" }

  /// Creates a log that writes to the same place as another.
  public init(_ log: OSLog) { label = log.label }

  /// Writes a message of the default level.
  public func log(_ message: OSLogMessage) { write(.default, message) }
  /// Writes a message of a level.
  public func log(level: OSLogType, _ message: OSLogMessage) { write(level, message) }
  /// Writes a message for the closest inspection.
  public func trace(_ message: OSLogMessage) { write(.debug, message) }
  /// Writes a message for finding mistakes.
  public func debug(_ message: OSLogMessage) { write(.debug, message) }
  /// Writes a message that helps, but is not essential.
  public func info(_ message: OSLogMessage) { write(.info, message) }
  /// Writes a message of the default level.
  public func notice(_ message: OSLogMessage) { write(.default, message) }
  /// Writes a message about an error that the program handles.
  public func warning(_ message: OSLogMessage) { write(.error, message) }
  /// Writes a message about an error.
  public func error(_ message: OSLogMessage) { write(.error, message) }
  /// Writes a message about a mistake in the program.
  public func critical(_ message: OSLogMessage) { write(.fault, message) }
  /// Writes a message about a mistake in the program.
  public func fault(_ message: OSLogMessage) { write(.fault, message) }

  private func write(_ level: OSLogType, _ message: OSLogMessage) {
    LogLine.write(label, level, message.text)
  }
}

/// One line of the log.
enum LogLine {
  private static let isEnabled =
    ProcessInfo.processInfo.environment["OS_ACTIVITY_MODE"] != "disable"

  static func write(_ label: String, _ level: OSLogType, _ text: String) {
    guard isEnabled else { return }
    // A log whose reader has gone is no reason to end the program.
    try? FileHandle.standardError.write(contentsOf: Data((line(label, level, text) + "\n").utf8))
  }

  static func line(_ label: String, _ level: OSLogType, _ text: String) -> String {
    let start = label.isEmpty ? "" : "[\(label)] "
    return start + "\(level): " + text.replacingOccurrences(of: "\n", with: "\\n")
  }
}

/// The level of a message.
public struct OSLogType: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The number of the level on devices.
  public let rawValue: UInt8
  /// Creates a level from its number.
  public init(rawValue: UInt8) { self.rawValue = rawValue }
  /// Creates a level from its number.
  public init(_ rawValue: UInt8) { self.rawValue = rawValue }

  /// The default level.
  public static let `default` = OSLogType(0)
  /// Messages that help, but are not essential.
  public static let info = OSLogType(1)
  /// Messages for finding mistakes.
  public static let debug = OSLogType(2)
  /// Messages about errors.
  public static let error = OSLogType(16)
  /// Messages about mistakes in the program.
  public static let fault = OSLogType(17)

  /// The name of the level.
  public var description: String {
    switch self {
    case .info: "info"
    case .debug: "debug"
    case .error: "error"
    case .fault: "fault"
    default: "notice"
    }
  }
}

/// The place to which messages are written.
public final class OSLog: NSObject, Sendable {
  let label: String
  let isEnabled: Bool

  /// Creates a log whose lines start with a subsystem and a category.
  public convenience init(subsystem: String, category: String) {
    self.init("\(subsystem):\(category)", isEnabled: true)
  }

  private init(_ label: String, isEnabled: Bool) {
    (self.label, self.isEnabled) = (label, isEnabled)
    super.init()
  }

  /// The log without a label.
  public static let `default` = OSLog("", isEnabled: true)
  /// The log that writes nothing.
  public static let disabled = OSLog("", isEnabled: false)
}
