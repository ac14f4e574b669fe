import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// A script of operations writes the recorded files, with the recorded bytes and modes.
///
/// The test moves the clock and counts the random numbers. A change of the code that changes the
/// format fails here.
///
/// To record the listing again after a deliberate change:
///
///     WORMHOLE_RENEW_TREE=1 swift test --filter GoldenTreeTests
@Suite(.blocking) struct GoldenTreeTests {
  @Test(arguments: [Sharing.owner, .group])
  func theScriptWritesTheRecordedFiles(_ sharing: Sharing) throws {
    let script = try GoldenScript(sharing)
    try script.run()
    let tree = try GoldenTree(script.path).lines
    let file = "format1/tree-\(sharing == .owner ? "owner" : "group").txt"
    if Processes.environment("WORMHOLE_RENEW_TREE") != nil {
      let text = tree.joined(separator: "\n") + "\n"
      let open = try Descriptor.open(
        path: Programs.source + "/Fixtures/" + file, [.writeOnly, .create, .truncate], mode: 0o644)
      try open.writeFully(Array(text.utf8))
    }
    let known = try Fixture.text(file).split(separator: "\n").map(String.init)
    #expect(known.count > 40, "the listing was recorded")
    let hint = "if that is meant: WORMHOLE_RENEW_TREE=1 swift test --filter GoldenTreeTests"
    for line in known where !tree.contains(line) {
      Issue.record("Fixtures/\(file): missing or changed: \(line); \(hint)")
    }
    for line in tree where !known.contains(line) {
      Issue.record("Fixtures/\(file): not in the record: \(line); \(hint)")
    }
    #expect(tree == known, "the order of the lines; \(hint)")
  }
}

/// The operations; the clock moves by one second before each step.
private final class GoldenScript: Sendable {
  private let folder: TemporaryDirectory
  private let clock = Monitor(Int64(1_000_000_000_000))
  private let container: SharedContainer

  var path: String { container.directory }

  init(_ sharing: Sharing) throws {
    folder = try TemporaryDirectory()
    let numbers = Monitor(UInt64(0))
    var options = Options()
    options.sharing = sharing
    options.writerName = "golden"
    options.mailbox.attempts = 1
    options.environment.random = {
      numbers.withLock { number in
        number += 1
        return number &* 0x9e37_79b9_7f4a_7c15
      }
    }
    let clock = clock
    options.environment.sinceBoot = { clock.withLock { $0 } }
    options.environment.sinceEpoch = { 1_700_000_000_250_000_000 + clock.withLock { $0 } }
    options.environment.bootIdentifier = { "00000000-0000-4000-8000-000000000001" }
    container = try SharedContainer(directory: folder.path + "/c", options: options)
  }

  func run() throws {
    let steps = [
      channels, settings, messages, deadLetters, contexts, files, starts, locks, removals,
    ]
    for step in steps {
      clock.withLock { $0 += 1_000_000_000 }
      try step()
    }
    container.close()
  }

  private func channels() throws {
    let speed = container.channel("speed", of: Double.self)
    try speed.put(87, durability: .power)
    try speed.update(default: 0) { $0 += 1.5 }
    let text = container.channel("tür/1 🚪", of: String.self)
    try text.put("auf")
    try text.clear()
    let seats = container.channel("seats", of: [Int].self)
    let sold = container.channel("sold", of: [Int].self)
    try seats.put([1, 2, 3], durability: .power)
    try container.update([seats, sold]) { values in
      values[1] = [values[0]?.removeLast() ?? 0]
    }
  }

  private func settings() throws {
    let settings = container.defaults("app")
    // One key: a dictionary of more keys is written in no fixed order.
    try settings.set(7, forKey: "volume")
    try settings.set("laut", forKey: "volume")
    try container.notice("ready").post()
  }

  private func messages() throws {
    let phone = try container.join(as: "phone", info: ["model": "9"])
    let watch = phone.peer("watch")
    try watch.send(Order(film: "Zurück", seats: [], note: nil))
    try watch.send(
      "urgent",
      .quick {
        $0.isUrgent = true
        $0.id = "second"
        $0.kind = "note"
        $0.timeToLive = .seconds(3600)
      })
    try watch.send(contentsOf: [1, 2, 3], .quick())
    let cancelled = try watch.send(4, .quick { $0.id = "fourth" })
    #expect(try cancelled.cancel() == .cancelled)
    try container.peer("watch", from: "stranger").send(5, .quick())
    phone.leave()
  }

  private func deadLetters() throws {
    let printer = try container.join(as: "printer")
    let phone = try container.join(as: "phone")
    try phone.peer("printer").send(1, .quick { $0.id = "bad" })
    // A message that is sent in the second of a listing waits for the next listing.
    clock.withLock { $0 += 2_000_000_000 }
    try printer.take(1)[0].fail("it has no paper")
    try eventually("the dead letter is written") {
      try !container.peer("printer").deadLetters.isEmpty
    }
    phone.leave()
    printer.leave()
  }

  private func contexts() throws {
    let phone = try container.join(as: "phone")
    try phone.peer("watch").setContext(["row": 9], kind: "row")
    phone.leave()
  }

  private func files() throws {
    try folder.write("0123456789", to: "poster.txt")
    let phone = try container.join(as: "phone")
    try phone.peer("watch").send(
      file: folder.path + "/poster.txt", metadata: ["year": 1985], .quick { $0.id = "poster" })
    phone.leave()
  }

  private func starts() throws {
    try container.registerLaunch(of: "usher", program: "/bin/true", arguments: ["--quiet"])
  }

  private func locks() throws {
    try container.lock("till").hold {}
  }

  private func removals() throws {
    try container.join(as: "visitor").leave()
    #expect(try container.removeMember("visitor"))
  }
}

/// The contents of a directory, one line for each file and directory below it.
private struct GoldenTree {
  private(set) var lines: [String] = []

  init(_ path: String) throws {
    let root = try Descriptor.open(path: path, [.readOnly, .directory])
    try collect(root, "")
  }

  private mutating func collect(_ directory: borrowing Descriptor, _ above: String) throws {
    for name in try directory.names().sorted() {
      let status = try directory.status(of: name)
      let mode = String(status.mode, radix: 8)
      // A user's own folder is called by the user's number.
      let isOwn = above == "staging/" && name == "\(Processes.effectiveUser)"
      let path = above + (isOwn ? "USER" : name)
      guard status.kind == .directory else {
        lines.append("\(path) \(mode) \(try content(of: name, in: directory, path))")
        continue
      }
      lines.append("\(path)/ \(mode)")
      try collect(directory.open(name, [.readOnly, .directory]), path + "/")
    }
  }

  private func content(
    of name: String, in directory: borrowing Descriptor, _ path: String
  ) throws -> String {
    let bytes = try directory.open(name, [.readOnly]).contents()
    // The heartbeat of the last holder contains the process ID of this process.
    if path.contains("/lock/") {
      // A child that another test is spawning holds an inherited lock for a moment; then a waiter
      // has left its flag, eight bytes behind the mark.
      return "\(bytes.count == 72 ? 64 : bytes.count) bytes"
    }
    if bytes.starts(with: "WHM".utf8) { return "\(bytes.count) bytes" }
    guard name == "profile.plist" || name == "start.plist" else {
      return bytes.map { String(256 + Int($0), radix: 16).suffix(2) }.joined()
    }
    return try description(PropertyListValue(reading: bytes))
  }

  /// The keys in order, without the values that depend on this process or its directory.
  private func description(_ value: PropertyListValue) -> String {
    let own: Set = ["process", "namespace", "started", "program", "directory", "environment"]
    guard let entries = value.dictionaryValue else { return "\(value)" }
    return entries.sorted { $0.key < $1.key }.map { key, value in
      own.contains(key) ? key : "\(key)=\(description(value))"
    }.joined(separator: ",")
  }
}
