import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// The recipes for a program's own log work as described.
@Suite(.blocking, .notSanitized("it reads text and runs other tools")) struct LoggingTests {
  @Test func aLoggerIsToldLevelTextAndFields() throws {
    typealias Logger = UsualLogging.Logger
    let told = Monitor<[(Logger.Level, String, Logger.Metadata)]>([])
    var options = Options()
    let logger = Logger { level, text, fields in
      told.withLock { $0.append((level, text, fields)) }
    }
    UsualLogging.tell(logger, by: &options)
    var entry = LogEntry(.warning, "it was mended")
    entry.channel = "speed"
    entry.errno = 5
    options.log(entry)
    let (level, text, fields) = try #require(told.withLock { $0 }.first)
    #expect(level == .warning && text == "it was mended")
    #expect(fields == ["channel": .string("speed"), "errno": .string("5")])
    #expect("\(entry)" == "warning: it was mended")
    for level in LogLevel.allCases {
      #expect(Logger.Level(rawValue: "\(level)") != nil)
    }
  }

  @Test func theOtherRecipesTellToo() {
    let told = Monitor<[String]>([])
    var options = Options()
    UnifiedLogging.tell(
      UnifiedLogging.Logger { type, text in told.withLock { $0.append("\(type) \(text)") } },
      by: &options)
    var entry = LogEntry(.critical, "it is gone:")
    entry.member = "watch"
    options.log(entry)
    #expect(told.withLock { $0 } == ["error it is gone: watch"])
    PlainLogging.tell(by: &options)
    // Entries of low importance are not logged.
    options.log(LogEntry(.notice, "nobody reads this"))
  }
}
