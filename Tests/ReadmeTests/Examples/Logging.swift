import Foundation
import Wormhole

// The examples for a program's own log in the article on threads and lifetimes, word for word. The
// loggers are stand-ins with the interfaces that programs know.

/// With the usual logging library.
enum UsualLogging {
  struct Logger: Sendable {
    enum Level: String { case trace, debug, info, notice, warning, error, critical }
    enum MetadataValue: Sendable, Equatable { case string(String) }
    typealias Metadata = [String: MetadataValue]

    let told: @Sendable (Level, String, Metadata) -> Void

    func log(
      level: Level, _ message: @autoclosure () -> String,
      metadata: @autoclosure () -> Metadata? = nil
    ) {
      told(level, message(), metadata() ?? [:])
    }
  }

  static func tell(_ logger: Logger, by options: inout Options) {
    options.log = { entry in
      logger.log(
        level: Logger.Level(rawValue: "\(entry.level)") ?? .info, "\(entry.text)",
        metadata: entry.fields.mapValues { .string($0) })
    }
  }
}

/// With the system's log, as in code for devices.
enum UnifiedLogging {
  enum OSLogType { case debug, info, `default`, error, fault }

  struct OSLogMessage: ExpressibleByStringInterpolation {
    enum Privacy { case `public` }
    struct StringInterpolation: StringInterpolationProtocol {
      var text = ""
      init(literalCapacity: Int, interpolationCount: Int) {}
      mutating func appendLiteral(_ literal: String) { text += literal }
      mutating func appendInterpolation(_ value: String, privacy: Privacy) { text += value }
    }

    let text: String
    init(stringLiteral value: String) { text = value }
    init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }
  }

  struct Logger: Sendable {
    let told: @Sendable (OSLogType, String) -> Void
    func log(level: OSLogType, _ message: OSLogMessage) { told(level, message.text) }
  }

  static func tell(_ logger: Logger, by options: inout Options) {
    options.log = { entry in
      let type: OSLogType =
        entry.level >= .error ? .error : entry.level >= .notice ? .default : .debug
      logger.log(
        level: type, "\(entry.text, privacy: .public) \(entry.member ?? "", privacy: .public)")
    }
  }
}

/// With nothing but standard error.
enum PlainLogging {
  static func tell(by options: inout Options) {
    options.log = { entry in
      guard entry.level >= .warning else { return }
      let fields = entry.fields.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }
      FileHandle.standardError.write(Data("\(entry)\(fields.joined())\n".utf8))
    }
  }
}
