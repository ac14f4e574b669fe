import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeWeb

/// The parser of requests: what it understands, what it refuses, and its bounds.
///
/// `WORMHOLE_FUZZ` sets the number of generated requests; `WORMHOLE_SEED` generates the same again.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct WebRequestParserTests {
  private static let seed = TestRun.seed
  private static let count = Processes.environment("WORMHOLE_FUZZ").flatMap { Int($0) } ?? 3000

  /// The requests of a text, and the refusal at its end.
  private func parse(
    _ text: String, by size: Int = .max, _ limits: WebLimits = WebLimits()
  ) -> (requests: [WebRequest], refusal: WebRefusal?) {
    var parser = WebRequestParser(limits)
    var requests: [WebRequest] = []
    var rest = Array(text.utf8)[...]
    repeat {
      parser.feed(rest.prefix(size))
      rest = rest.dropFirst(size)
      do throws(WebRefusal) {
        while let request = try parser.next() { requests.append(request) }
      } catch {
        return (requests, error)
      }
    } while !rest.isEmpty
    return (requests, nil)
  }

  @Test func aRequestIsTheSameInPiecesOfAnySize() {
    let text =
      "GET /a-b?c=d HTTP/1.1\r\nHost: x\r\nX-Y:  z \r\n\r\n"
      + "POST /e HTTP/1.0\r\nContent-Length: 3\r\n\r\nf\r\n"
    let expected = [
      WebRequest(.get, "/a-b", [.init("host", "x"), .init("x-y", "z")]),
      WebRequest(
        .post, "/e", [.init("content-length", "3")], Array("f\r\n".utf8), staysOpen: false),
    ]
    for size in [1, 2, 3, 7, 1000] {
      let (requests, refusal) = parse(text, by: size)
      #expect(requests == expected)
      #expect(refusal == nil)
    }
    #expect(expected[0].header("HOST") == nil)
  }

  @Test(arguments: [
    ("\r\n\r\n", 400), ("GET /\r\n\r\n", 400), ("GET  / HTTP/1.1\r\n\r\n", 400),
    ("GET x HTTP/1.1\r\n\r\n", 400), ("GET http://localhost/ HTTP/1.1\r\n\r\n", 400),
    ("GET /\u{e9} HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/2.0\r\n\r\n", 505),
    ("PUT / HTTP/1.1\r\n\r\n", 405), ("get / HTTP/1.1\r\n\r\n", 405),
    ("GET / HTTP/1.1\nHost: x\r\n\r\n", 400), ("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nA: \0\r\n\r\n", 400), ("GET / HTTP/1.1\r\nA : b\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\n: b\r\n\r\n", 400), ("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\n\r\n", 411), ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nContent-Length: 99999\r\n\r\n", 413),
    ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
  ])
  func whatTwoProgramsMightReadDifferentlyIsRefused(_ text: String, _ status: Int) {
    #expect(parse(text).refusal?.status == status)
    #expect(parse(text, by: 1).refusal?.status == status)
  }

  @Test func aListOfConnectionOptionsMayContainTheEnd() {
    func staysOpen(_ options: String) -> Bool? {
      parse("GET / HTTP/1.1\r\nConnection: \(options)\r\n\r\n").requests.first?.staysOpen
    }
    for options in ["close", "Close", "TE, close", "close,TE", "TE ,\tClose"] {
      #expect(staysOpen(options) == false, "\(options)")
    }
    for options in ["keep-alive", "TE, closed", ""] {
      #expect(staysOpen(options) == true, "\(options)")
    }
  }

  @Test func aHeadIsBoundedBeforeItsEnd() {
    let long = String(repeating: "a", count: 9000)
    #expect(parse("GET /" + long).refusal?.status == 431)
    #expect(parse("GET / HTTP/1.1\r\nA: " + long, by: 100).refusal?.status == 431)
    let many = (0..<65).map { "A\($0): b\r\n" }.joined()
    #expect(parse("GET / HTTP/1.1\r\n\(many)\r\n").refusal?.status == 431)
  }

  /// Damaged and generated requests are understood or refused, the same in pieces of any size, and
  /// what is understood keeps the rules of the parser.
  @Test func anyBytesAreUnderstoodOrRefused() throws {
    var random = SeededRandom(seed: Self.seed)
    let seeds = try Fixture.text("fuzz/requests.txt").split(separator: "\n").map {
      $0.replacing("\\r\\n", with: "\r\n").replacing("\\t", with: "\t")
    }
    let pieces = [
      "\r\n", "\n", "\r", " ", ":", "\0", "\u{202E}", "Content-Length: 5\r\n", "GET ", "POST ",
      "HTTP/1.1", "/", "?", "99999999999999999999", "Transfer-Encoding: chunked\r\n",
    ]
    for number in 0..<Self.count {
      var bytes = Array(seeds.randomElement(using: &random)!.utf8)
      for _ in 0..<Int.random(in: 0..<4, using: &random) {
        let place = Int.random(in: 0...bytes.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes.insert(contentsOf: pieces.randomElement(using: &random)!.utf8, at: place)
        case 1: bytes.removeSubrange(place..<min(bytes.count, place + 3))
        default:
          if place < bytes.count { bytes[place] = .random(in: 0...255, using: &random) }
        }
      }
      let text = String(decoding: bytes, as: UTF8.self)
      let (requests, refusal) = parse(text)
      let slowly = parse(text, by: Int.random(in: 1...5, using: &random))
      let holds =
        requests == slowly.requests && refusal == slowly.refusal
        && requests.allSatisfy { request in
          request.path.utf8.first == 0x2F && request.body.count <= WebLimits().body
            && request.path.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x3F }
        }
      if !holds {
        Issue.record("\(text.debugDescription), number \(number); WORMHOLE_SEED=\(Self.seed)")
        return
      }
    }
  }
}
