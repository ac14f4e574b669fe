import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeCinemaTime
import WormholeSyscalls

/// The images of tickets, read by a decoder of another author.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct CodeTests {
  private let seed = TestRun.seed

  @Test func theNineTicketsAreOfTheSizeTheyAreKnownBy() throws {
    for movie in Movie.all {
      let code = try QRCode(movie.ticketText)
      #expect(code.version == (movie.id == 858555 ? 4 : 3), "\(movie.title)")
      #expect(code.side == (movie.id == 858555 ? 33 : 29))
      let bytes = PNG(code).bytes
      // Width and height stand at the beginning of the header.
      #expect(bytes[16..<24].elementsEqual([0, 0, 0, 100, 0, 0, 0, 100]))
    }
  }

  @Test func anotherDecoderReadsTheNineAndAHundredRandomTitles() throws {
    guard Programs.installed("zbarimg") != nil else {
      skip("QR codes read by another decoder", missing: "zbarimg")
      return
    }
    var random = SeededRandom(seed: seed)
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 .,:'&!-")
    var titles = Movie.all.map(\.ticketText) + ["M @ 1:00 PM"]
    // Of every length for which a version exists.
    titles += (0..<100).map { number in
      let length = 1 + number * 229 / 99
      let title = String((0..<length).map { _ in letters.randomElement(using: &random)! })
      return "\(title) @ \(Int.random(in: 1...12, using: &random)):00 PM"
    }
    let folder = try TemporaryDirectory()
    var versions = Set<Int>()
    for (number, title) in titles.enumerated() {
      let code = try QRCode(title)
      versions.insert(code.version)
      try Data(PNG(code).bytes).write(to: URL(filePath: "\(folder.path)/\(number).png"))
    }
    #expect(versions == Set(1...13), "seed \(seed)")
    let files = titles.indices.map { "\(folder.path)/\($0).png" }
    let outcome = try run(
      "zbarimg", ["--quiet", "--raw", "--nodbus", "-Sdisable", "-Sqrcode.enable"] + files)
    let read = outcome.output.split(separator: "\n").map(String.init)
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(read == titles, "seed \(seed)")
  }

  @Test func titlesThatAreNotASCIIAreReadAsUTF8() throws {
    guard Programs.installed("zbarimg") != nil else {
      skip("QR codes in UTF-8 read by another decoder", missing: "zbarimg")
      return
    }
    let folder = try TemporaryDirectory()
    for title in ["Die Büchse der Pandora @ 5:00 PM", "大独裁者 @ 9:00 PM", "Amélie – ½ 🎬"] {
      let path = "\(folder.path)/code.png"
      try Data(PNG(QRCode(title)).bytes).write(to: URL(filePath: path))
      let outcome = try run("zbarimg", ["--quiet", "--raw", "--nodbus", path])
      #expect(outcome.output == title + "\n")
    }
  }

  @Test func whatIsTooLongIsAnError() throws {
    #expect(try QRCode(String(repeating: "x", count: 241)).version == 13)
    #expect(throws: QRCode.TooLong.self) { try QRCode(String(repeating: "x", count: 242)) }
    #expect(try QRCode("").version == 1)
  }

  /// The patterns by which scanners find a code, whatever its content.
  @Test func everyCodeHasItsPatterns() throws {
    for length in stride(from: 0, to: 240, by: 13) {
      let code = try QRCode(String(repeating: "y", count: length))
      let last = code.side - 1
      for (row, column) in [(0, 0), (0, last - 6), (last - 6, 0)] {
        for index in 0..<7 {
          #expect(code[row, column + index] && code[row + 6, column + index])
          #expect(code[row + index, column] && code[row + index, column + 6])
        }
        #expect(!code[row + 1, column + 1] && code[row + 3, column + 3])
      }
      for index in 8..<last - 7 { #expect(code[6, index] == index.isMultiple(of: 2)) }
      #expect(code[last - 7, 8], "the module that is always dark")
      #expect(!code[-1, 0] && !code[0, code.side])
    }
  }

  @Test func theLinesOfATerminalAreAllOfOneWidth() throws {
    let lines = try QRCode("The General @ 5:00 PM").lines
    #expect(Set(lines.map(\.count)) == [33])
    #expect(lines.count == 17)
  }
}
