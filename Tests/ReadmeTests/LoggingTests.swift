import Syscalls
import TestSupport
import TestTraits
import Testing
import Wormhole

/// The recipes for a program's own log compile, and do what they say.
@Suite(.blocking) struct LoggingTests {
  /// The Swift blocks of the article's section, each without what it is indented by.
  private func recipes() throws -> [[Substring]] {
    let text = try contents("Sources/Wormhole/Wormhole.docc/ThreadsAndLifetimes.md")
    let section = try #require(text.split(separator: "### A program's own log\n").last)
    let parts = section.split(separator: "```", omittingEmptySubsequences: false)
    return stride(from: 1, to: parts.count, by: 2).map {
      parts[$0].dropFirst("swift\n".count).split(separator: "\n").map(trimmed)
    }
  }

  private func contents(_ path: String) throws -> String {
    let file = try Descriptor.open(path: Programs.source + "/" + path, [.readOnly])
    return String(decoding: try file.contents(), as: UTF8.self)
  }

  private func trimmed(_ line: Substring) -> Substring { line.drop { $0 == " " } }

  @Test func theArticlesRecipesAreThoseThatCompile() throws {
    let lines = try contents("Tests/ReadmeTests/Examples/Logging.swift")
      .split(separator: "\n").map(trimmed)
    let recipes = try recipes()
    #expect(recipes.count == 3)
    for recipe in recipes {
      #expect(lines.contains { $0 == recipe.first })
      let isThere = lines.indices.contains { lines[$0...].starts(with: recipe) }
      #expect(isThere, "\(recipe.joined(separator: "\n"))")
    }
  }

  @Test func aLoggerIsToldLevelTextAndFields() throws {
    typealias Logger = UsualLogging.Logger
    let told = Monitor<[(Logger.Level, String, Logger.Metadata)]>([])
    var options = Wormhole.Options()
    let logger = Logger { level, text, fields in
      told.withLock { $0.append((level, text, fields)) }
    }
    UsualLogging.tell(logger, by: &options)
    var entry = Wormhole.LogEntry(.warning, "it was mended")
    entry.channel = "speed"
    entry.errno = 5
    options.log(entry)
    let (level, text, fields) = try #require(told.withLock { $0 }.first)
    #expect(level == .warning && text == "it was mended")
    #expect(fields == ["channel": .string("speed"), "errno": .string("5")])
    #expect("\(entry)" == "warning: it was mended")
    for level in Wormhole.LogLevel.allCases {
      #expect(Logger.Level(rawValue: "\(level)") != nil)
    }
  }

  @Test func theOtherRecipesTellToo() {
    let told = Monitor<[String]>([])
    var options = Wormhole.Options()
    UnifiedLogging.tell(
      UnifiedLogging.Logger { type, text in told.withLock { $0.append("\(type) \(text)") } },
      by: &options)
    var entry = Wormhole.LogEntry(.critical, "it is gone:")
    entry.member = "watch"
    options.log(entry)
    #expect(told.withLock { $0 } == ["error it is gone: watch"])
    PlainLogging.tell(by: &options)
    // What matters little is not told.
    options.log(Wormhole.LogEntry(.notice, "nobody reads this"))
  }
}
