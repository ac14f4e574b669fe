import Foundation
import TestSupport
import TestTraits
import Testing
import WatchConnectivity
import WormholeSyscalls

/// Both sides are killed and started again at random while much is transferred.
@Suite(.notSanitized("the apps run in processes of their own")) struct ChurnTests {
  /// The lines that the processes of one side have written.
  private struct Side {
    let role: String
    let container: String
    var lines: [String] = []
    var running: Running?
    var kills = 0

    mutating func start(_ steps: [String]) throws {
      running = try Running(
        Programs.built("DropInPeer"), ["session", "activate"] + steps + ["await=never"],
        environment: [
          "WORMHOLE_ROLE=\(role)", "WORMHOLE_CONTAINER=\(container)", "WORMHOLE_GROUP=",
        ])
    }

    mutating func kill() throws {
      guard let program = running else { return }
      try program.child.send(.kill)
      _ = try program.outcome()
      lines += try program.output.split(separator: "\n").map(String.init)
      running = nil
      kills += 1
    }

    var now: [String] {
      get throws { lines + (try running?.output.split(separator: "\n").map(String.init) ?? []) }
    }
  }

  private func numbers(_ lines: [String], _ prefix: String) -> [Int] {
    lines.filter { $0.hasPrefix(prefix) }.compactMap {
      Int($0.dropFirst(prefix.count).prefix { $0.isNumber })
    }
  }

  @Test(.blocking) func everyTransferEndsWhateverDies() throws {
    let most = TestRun.isLong ? 2000 : 500
    let seed = TestRun.seed
    var random = SeededRandom(seed: seed)
    let folder = try TemporaryDirectory()
    var phone = Side(role: "phone", container: folder.path + "/container")
    var watch = Side(role: "watch", container: folder.path + "/container")
    try watch.start([])
    var next = 1
    while next <= most {
      try phone.start(["burst=\(next),\(most),\(folder.path)"])
      let target = next + Int.random(in: 5...(most / 8), using: &random)
      let killsWatch = Bool.random(using: &random)
      try eventually("some of it") {
        numbers(try phone.now, "about ").last ?? 0 >= min(target, most)
      }
      if killsWatch {
        try watch.kill()
        try watch.start([])
      }
      if target < most { try phone.kill() } else { break }
      next = (numbers(phone.lines, "about ").last ?? 0) + 1
    }
    let last = try phone.running.map { _ in try phone.now } ?? phone.lines
    _ = last
    if phone.running == nil { try phone.start([]) }
    try eventually("the burst is over", within: patience * 2) {
      try numbers(phone.now, "about ").contains(most)
    }
    // All transfers that are known to have been sent are reported as arrived, once.
    try eventually("all ends, seed \(seed)", within: patience * 4) {
      let lines = try phone.now
      let ended = Set(numbers(lines, "finished n=") + numbers(lines, "finished file "))
      return ended.isSuperset(of: numbers(lines, "sent "))
    }
    let lines = try phone.now
    let ends = numbers(lines, "finished n=") + numbers(lines, "finished file ")
    #expect(!lines.contains { $0.hasPrefix("finished") && !$0.hasSuffix(" ok") }, "\(seed)")
    #expect(ends.count - Set(ends).count <= phone.kills, "\(seed)")
    let heard = try watch.now
    let infos = numbers(heard, "info n=")
    let files = heard.filter { $0.hasPrefix("file ") }
    #expect(
      files.allSatisfy { line in
        let words = line.split(separator: " ")
        return words[1].dropLast(4) == words[2].dropFirst("content-".count)
      }, "\(seed)")
    let got = infos + numbers(files, "file ")
    #expect(Set(got).isSuperset(of: numbers(lines, "sent ")), "\(seed)")
    #expect(got.count - Set(got).count <= watch.kills, "\(seed)")
  }
}
