import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The article *Threads and lifetimes* names each thread of the library, and each type with a
/// queue.
@Suite(.blocking, .notSanitized("it reads text")) struct ThreadTests {
  private static let article = "Sources/Wormhole/Wormhole.docc/ThreadsAndLifetimes.md"
  /// The largest number of kinds of threads.
  private static let limit = 8

  @Test func theArticleNamesEachThread() throws {
    let started = Set(try Self.library().flatMap(Self.threads(in:)))
    #expect(try Self.table("threads") == started.sorted())
    #expect(started.allSatisfy { $0.hasPrefix("wormhole-") })
    #expect(started.count <= Self.limit)
  }

  @Test func theArticleNamesEachTypeWithAQueue() throws {
    let types = Set(try Self.library().flatMap(Self.queues(in:)))
    #expect(try Self.table("queues") == types.sorted())
  }

  @Test func threadsAndQueuesAreFound() {
    let file = SourceFile(
      "Sources/Wormhole/Room/File.swift",
      """
      /// Thread("comment")
      final class Owner {
        let queue = WorkQueue()
        func begin() throws { try Thread("planted") {} }
      }
      extension Other {
        func work() { Worker(on: queue) }
      }
      """)
    #expect(Self.threads(in: file) == ["planted"])
    #expect(Self.queues(in: file) == ["Owner", "Other"])
  }

  private static func library() throws -> [SourceFile] {
    try House.files().filter {
      $0.isSwift && $0.isSource
        && ["Wormhole", "WormholeContainerStorage", "WormholeSyscalls"].contains($0.room)
        && !["Worker.swift", "CallQueue.swift"].contains($0.path.split(separator: "/").last)
    }
  }

  /// The names of the threads that a file starts.
  private static func threads(in file: SourceFile) -> Set<String> {
    var names: Set<String> = []
    for (code, line) in zip(file.code, file.lines) where code.contains("Thread(\"") {
      let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
      if parts.count > 1 { names.insert(String(parts[1])) }
    }
    return names
  }

  /// The outermost types in which a file makes a queue or a worker.
  private static func queues(in file: SourceFile) -> Set<String> {
    var types: Set<String> = []
    var type: String?
    for (code, words) in zip(file.code, file.words) {
      let outer = words.firstIndex { ["class", "struct", "enum", "extension"].contains($0.text) }
      if let outer, code.first != " ", outer + 1 < words.count {
        type = String(words[outer + 1].text)
      }
      if words.contains(where: { $0.isCalled && ["WorkQueue", "Worker"].contains($0.text) }),
        let type
      {
        types.insert(type)
      }
    }
    return types
  }

  /// The names in the first column of a table of the article, sorted.
  private static func table(_ mark: String) throws -> [String] {
    let text = String(
      decoding: try Descriptor.open(path: "\(Programs.source)/\(article)", [.readOnly]).contents(),
      as: UTF8.self)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let rows = lines.drop { $0 != "<!-- \(mark) -->" }.dropFirst(3).prefix { $0.hasPrefix("|") }
    return rows.map { String($0.split(separator: "`")[1]) }.sorted()
  }
}
