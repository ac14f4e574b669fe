import Foundation
import Wormhole
import WormholeCFloor
import WormholeSyscalls

/// A request to another process until its reply arrives, against a file there and a file back.
///
/// In the small size both processes share a processor; in the large size each process has its own.
struct RequestRoundTrip: Benchmark {
  static let name = "request"
  static let summary = "a request and its reply, against a file there and a file back in C"
  static let isPaired = true

  private let question = Data(repeating: 7, count: 100)
  private let scratch: Scratch
  private let peer: Peer
  private let line: Line
  private let others: [RequestProcess]

  /// The baseline's calls, with the directories that they use.
  private final class Line {
    var line = floor_line()
    deinit { floor_line_close(&line) }
  }

  init(size: Size) throws {
    scratch = try Scratch()
    EchoProcess.pin(0)
    let container = try SharedContainer(directory: scratch.path + "/holes")
    peer = try container.join(as: "phone").peer("watch")
    line = Line()
    guard floor_line_open(&line.line, scratch.path + "/floor", 0) == 0 else {
      throw BenchmarkError.floor(String(cString: strerror(errno)))
    }
    others = [
      try RequestProcess("ours", size, scratch.path),
      try RequestProcess("floor", size, scratch.path),
    ]
    // The peer of the baseline reports that it listens.
    var bytes = [UInt8](repeating: 0, count: 100)
    guard floor_listen(&line.line, &bytes, 100) == 1 else {
      throw BenchmarkError.nothingMeasured(Self.name)
    }
    let deadline = ContinuousClock.now + .seconds(10)
    while try !peer.isThere {
      guard ContinuousClock.now < deadline else { throw BenchmarkError.nothingMeasured(Self.name) }
    }
    for _ in 0..<20 {
      try ours()
      try baseline()
    }
  }

  func ours() throws {
    let answer = try peer.request(question, as: Data.self, kind: "echo")
    guard answer.count == 100 else { throw BenchmarkError.wrongResult(Self.name) }
  }

  func baseline() throws {
    var bytes = [UInt8](repeating: 7, count: 100)
    guard floor_tell(&line.line, bytes, 100) == 0, floor_listen(&line.line, &bytes, 100) == 100
    else { throw BenchmarkError.floor(String(cString: strerror(errno))) }
  }

  func details() throws -> [Detail] {
    defer { EchoProcess.pin(-1) }  // Details come last; other workloads may use both processors.
    let there = try Measurement.measure(for: .milliseconds(200)) { try ours() }
    let bare = try Measurement.measure(for: .milliseconds(200)) { try baseline() }
    return [
      Detail("there and back, us", there.median / 1000),
      Detail("with the bare calls, us", bare.median / 1000),
      Detail("times the bare calls", there.median / bare.median),
    ]
  }
}

extension Peer {
  /// Whether a handler replies to requests.
  var isThere: Bool {
    get throws {
      do throws(WormholeError) {
        let _: Data = try request(Data(), kind: "echo", within: .milliseconds(500))
        return true
      } catch {
        // On a busy machine a handler may have no processor within the time.
        let isLater = [.unreachable, .rejected, .timedOut].contains(error.code)
        guard isLater else { throw error }
        return false
      }
    }
  }
}

/// The replying process: this program, started again with a hidden argument.
final class RequestProcess {
  static let argument = "--answering-process"
  private let child: Child

  init(_ side: String, _ size: Size, _ path: String) throws {
    child = try Child.spawn(
      Bundle.main.executablePath ?? CommandLine.arguments[0],
      [Self.argument, side, size.rawValue, path])
  }

  deinit {
    try? child.send(.kill)
    _ = try? child.wait()
  }

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 3, let size = Size(rawValue: arguments[1]) else {
      throw BenchmarkError.wrongResult("the arguments of a process")
    }
    EchoProcess.pin(size == .small ? 0 : 1)
    if arguments[0] == "floor" { return try answerBarely(arguments[2] + "/floor") }
    if arguments[0] == "presents" { try AccessPresented.present(arguments[2]) }
    let member = try SharedContainer(directory: arguments[2] + "/holes").join(as: "watch")
    let responding = member.respond(to: Data.self, kind: "echo") { $0 }
    _ = Monitor(0).wait(until: .now + .seconds(300)) { _ in Bool?.none }
    responding.stop()
  }

  private static func answerBarely(_ path: String) throws {
    var line = floor_line()
    var bytes = [UInt8](repeating: 0, count: 100)
    guard floor_line_open(&line, path, 1) == 0, floor_tell(&line, bytes, 1) == 0 else {
      throw BenchmarkError.floor(String(cString: strerror(errno)))
    }
    while floor_listen(&line, &bytes, 100) == 100 {
      guard floor_tell(&line, bytes, 100) == 0 else { return }
    }
  }
}
