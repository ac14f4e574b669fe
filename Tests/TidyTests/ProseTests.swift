import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The texts of each room name their subjects: see ``Prose``.
///
/// `.ci/prose` has the figures of each room. The mean is at most 6 % (10 % in the comments of
/// tests), and no sentence has a third or more. A room above the limits has its figures in the
/// file, and the figures may only fall. A room must not lose more than a tenth of its words either:
/// reasons are rewritten, not left out. A person who has changed more on purpose, and has let
/// another person compare old and new, renews the file:
///
///     WORMHOLE_RENEW_PROSE=1 swift test --filter ProseTests
@Suite(.blocking, .notSanitized("it reads text")) struct ProseTests {
  private static let path = ".ci/prose"

  private struct Figures {
    var mean: Double
    var above: Int
    var words: Int
  }

  private static func most(of room: String) -> Double {
    let isTool = SourceFile.tools.contains { room.hasPrefix("Tests/\($0)") }
    return room.hasPrefix("Tests/") && !isTool ? 10 : 6
  }

  @Test func theTextsOfEachRoomNameTheirSubjects() throws {
    let rooms = try measure()
    #expect(rooms.count > 30, "they were found")
    let listed = try self.listed()
    if Processes.environment("WORMHOLE_RENEW_PROSE") != nil {
      return try write(rooms, listed)
    }
    let hint = "; to renew: WORMHOLE_RENEW_PROSE=1 swift test --filter ProseTests"
    for (room, prose) in rooms.sorted(by: { $0.key < $1.key }) {
      guard let figures = listed[room] else {
        Issue.record("\(Self.path): \(room) is missing\(hint)")
        continue
      }
      let limit = max(Self.most(of: room), figures.mean)
      #expect(Self.rounded(prose.mean) <= limit, "\(room)")
      #expect(prose.worst.count <= figures.above, "\(room): \(prose.worst.prefix(20))")
      #expect(prose.words * 10 >= figures.words * 9, "\(room) has lost a tenth of its words\(hint)")
    }
    for room in Set(listed.keys).subtracting(rooms.keys) {
      Issue.record("\(Self.path): there is no \(room)\(hint)")
    }
  }

  /// The measure itself, by sentences whose shares are known.
  @Test func theMeasureCountsSentencesOfSixWords() {
    var prose = Prose()
    prose.add("Who has it has it. That is so: a reader waits for the writer's lock.", at: "x:1")
    // Five words; three; and eight, without a word that stands for another.
    #expect(prose.sentences == 1)
    #expect(prose.mean == 0)
    prose.add("It keeps what `they` and those others had there.", at: "x:2")
    #expect(prose.sentences == 2)
    #expect(prose.worst == ["x:2: It keeps what `they` and those others had there."])
    #expect(
      Prose.words(of: "see [what](it/that) `one two` there")
        == ["see", "[what", "code", "there"].map { $0.drop { $0 == "[" } })
    let file = SourceFile(
      "Sources/Room/File.swift",
      """
      /// One paragraph
      /// of two lines.
      ///
      /// - Parameter name: an item
      let text = "printed \\(it) text"  // not counted
      let long = \"\"\"
        Two lines of
        a literal.
        \"\"\"
      """)
    #expect(
      file.commentParagraphs.map(\.text) == [
        "One paragraph of two lines.", "Parameter name: an item",
      ])
    #expect(file.textParagraphs.map(\.text) == ["printed text", "Two lines of a literal."])
  }

  // MARK: The rooms

  private func measure() throws -> [String: Prose] {
    var rooms: [String: Prose] = [:]
    func add(_ paragraphs: [SourceFile.Paragraph], of file: SourceFile, to room: String) {
      for paragraph in paragraphs {
        rooms[room, default: Prose()].add(paragraph.text, at: "\(file.path):\(paragraph.line)")
      }
    }
    for file in try House.files() {
      let kinds = [".swift", ".c", ".h"]
      let top = file.path.split(separator: "/").prefix(2).joined(separator: "/")
      if file.path.hasSuffix(".md") {
        add(file.articleParagraphs, of: file, to: file.isSource ? "\(top) (articles)" : file.path)
      } else if kinds.contains(where: { file.path.hasSuffix($0) }), file.isSource || file.isTest {
        add(file.commentParagraphs, of: file, to: top)
        if file.isSource, file.isSwift { add(file.textParagraphs, of: file, to: "\(top) (texts)") }
      }
    }
    return rooms.filter { $0.value.sentences > 0 }
  }

  private func listed() throws -> [String: Figures] {
    let file = try Descriptor.open(path: Programs.source + "/" + Self.path, [.readOnly])
    let text = String(decoding: try file.contents(), as: UTF8.self)
    var found: [String: Figures] = [:]
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      let fields = line.split(separator: " ", maxSplits: 3)
      let numbers = fields.dropLast().map { Double($0) ?? .nan }
      try #require(fields.count == 4 && numbers.allSatisfy { !$0.isNaN }, "\(line)")
      found[String(fields[3])] = Figures(
        mean: numbers[0], above: Int(numbers[1]), words: Int(numbers[2]))
    }
    return found
  }

  private static func rounded(_ percent: Double) -> Double { (percent * 10).rounded() / 10 }

  private func write(_ rooms: [String: Prose], _ listed: [String: Figures]) throws {
    var text = "# Mean share of stand-ins in percent, sentences of a third and more, words, room.\n"
    for (room, prose) in rooms.sorted(by: { $0.key < $1.key }) {
      // The figures of a room above the limits may only fall.
      let mean = min(Self.rounded(prose.mean), listed[room]?.mean ?? .infinity)
      let above = min(prose.worst.count, listed[room]?.above ?? .max)
      text += "\(mean) \(above) \(prose.words) \(room)\n"
    }
    let file = try Descriptor.open(
      path: Programs.source + "/" + Self.path, [.writeOnly, .create, .truncate], mode: 0o644)
    try file.write(text)
  }
}
