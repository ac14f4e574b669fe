import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The article *Threads and lifetimes* names each thread of the library, each type with a queue or
/// a worker, and each queue of Dispatch.
@Suite(.blocking, .notSanitized("it reads text")) struct ThreadTests {
  private static let article = "Sources/Wormhole/Wormhole.docc/ThreadsAndLifetimes.md"
  /// The largest number of kinds of threads, and of places that make a queue.
  private static let limit = 8

  @Test func theArticleNamesEachThread() throws {
    let started = Set(try Self.library().flatMap(Self.threads(in:)))
    #expect(try Self.table("threads") == started.sorted())
    #expect(started.allSatisfy { $0.hasPrefix("wormhole-") })
    #expect(started.count <= Self.limit)
  }

  @Test func theArticleNamesEachTypeWithAQueue() throws {
    let types = try Self.queued().flatMap { Self.types(in: $0, making: "WorkQueue") }
    #expect(try Self.table("queues") == Set(types).sorted())
    #expect(types.count <= Self.limit)
  }

  @Test func theArticleNamesEachTypeWithAWorker() throws {
    let types = Set(try Self.queued().flatMap { Self.types(in: $0, making: "Worker") })
    #expect(try Self.table("workers") == types.sorted())
  }

  @Test func theArticleNamesEachQueueOfDispatch() throws {
    let labels = Set(try House.files().filter(\.isSource).flatMap(Self.labels(in:)))
    #expect(try Self.table("dispatch") == labels.sorted())
  }

  @Test func threadsAndQueuesAreFound() {
    let file = SourceFile(
      "Sources/Wormhole/Room/File.swift",
      """
      /// Thread("comment")
      final class Owner {
        let queue = WorkQueue(), other = WorkQueue()
        let calls = DispatchQueue(label: "wormhole.planted")
        func begin() throws { try Thread("planted") {} }
      }
      extension Other {
        func work() { Worker(on: queue) }
      }
      """)
    #expect(Self.threads(in: file) == ["planted"])
    #expect(Self.types(in: file, making: "WorkQueue") == ["Owner", "Owner"])
    #expect(Self.types(in: file, making: "Worker") == ["Other"])
    #expect(Self.labels(in: file) == ["wormhole.planted"])
  }

  private static func library() throws -> [SourceFile] {
    try files(of: ["Wormhole", "WormholeContainerStorage", "WormholeSyscalls"])
  }

  /// The files of the library, and of the modules on top of it that programs import.
  private static func queued() throws -> [SourceFile] {
    try library()
      + files(of: [
        "AppGroups", "Communicator", "MMWormhole", "WatchConnectivity", "WormholeDropIns",
        "WormholePairings", "WormholeTesting",
      ])
  }

  private static func files(of rooms: Set<String>) throws -> [SourceFile] {
    try House.files().filter {
      $0.isSwift && $0.isSource && rooms.contains($0.room)
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

  /// The outermost type of each place where a file makes a queue or a worker.
  private static func types(in file: SourceFile, making made: String) -> [String] {
    var types: [String] = []
    var type: String?
    for (code, words) in zip(file.code, file.words) {
      let outer = words.firstIndex { ["class", "struct", "enum", "extension"].contains($0.text) }
      if let outer, code.first != " ", outer + 1 < words.count {
        type = String(words[outer + 1].text)
      }
      guard let type else { continue }
      types += words.filter { $0.isCalled && $0.text == made }.map { _ in type }
    }
    return types
  }

  /// The labels of the queues of Dispatch that a file makes.
  private static func labels(in file: SourceFile) -> [String] {
    zip(file.code, file.lines).filter { $0.0.contains("label: \"") }.flatMap { _, line in
      line.split(separator: "\"").dropFirst().map(String.init)
        .filter { $0.hasPrefix("wormhole.") }
    }
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
