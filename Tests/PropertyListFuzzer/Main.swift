import Foundation
import PropertyListFuzzing

/// Throws mutated files at the readers: `PropertyListFuzzer [--seed n] [--count n] [--first n]
/// [--trace]`.
///
/// A broken promise ends the program with the line that replays the case. A crash ends the program
/// too, except that the sanitizer or the kernel prints last; `--trace` then shows the last case
/// that was started.
@main enum Main {
  static func main() {
    do {
      try run()
    } catch {
      print(error)
      exit(error is Usage ? 64 : 1)
    }
  }

  private static func run() throws {
    var arguments = CommandLine.arguments.dropFirst()
    var seed = UInt64.random(in: 1...999_999_999)
    var count = 10_000
    var first = 0
    var isTraced = false
    while let argument = arguments.popFirst() {
      switch argument {
      case "--seed": seed = try number(arguments.popFirst(), upTo: .max)
      case "--count": count = Int(try number(arguments.popFirst(), upTo: 1 << 62))
      case "--first": first = Int(try number(arguments.popFirst(), upTo: 1 << 62))
      case "--trace": isTraced = true
      default: throw Usage()
      }
    }
    print("seed \(seed), cases \(first)..<\(first + count)")
    let fuzzer = Fuzzer(seed: seed)
    var tally = Fuzzer.Tally()
    for start in stride(from: first, to: first + count, by: 100_000) {
      let end = min(first + count, start + 100_000)
      let part = try fuzzer.run(start..<end) { if isTraced { print("case \($0)") } }
      tally.cases += part.cases
      tally.accepted += part.accepted
      tally.slowest = max(tally.slowest, part.slowest)
      print("\(tally.cases) cases, \(tally.accepted) accepted, slowest \(tally.slowest)")
    }
    print("peak memory \(peakMemory)")
  }

  /// The peak memory as the kernel has counted it, in the kernel's own words.
  private static var peakMemory: Substring {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return line?.dropFirst(6).drop { $0.isWhitespace } ?? "unknown"
  }

  private static func number(_ text: String?, upTo most: UInt64) throws -> UInt64 {
    guard let text, let number = UInt64(text), number <= most else { throw Usage() }
    return number
  }

  struct Usage: Error, CustomStringConvertible {
    let description = "usage: PropertyListFuzzer [--seed n] [--count n] [--first n] [--trace]"
  }
}
