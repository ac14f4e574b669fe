import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSyscalls

/// Messages from another machine, as a carrier writes them.
@Suite(.blocking) struct OriginTests {
  private static let origin: PropertyListValue = .dictionary([
    "machine": .string("0123456789abcdef"), "number": .integer(7),
  ])

  private struct Refusal: Error {}

  private let pair: Pair

  init() throws {
    pair = try Pair {
      $0.mailbox.attempts = 1
      $0.mailbox.retryDelay = .milliseconds(1)
    }
  }

  /// Adds keys to the only file of a part.
  private func change(_ part: String, _ keys: [String: PropertyListValue]) throws {
    let folder = pair.meeting.path + "/members/watch/" + part + "/"
    let file = folder + (try #require(pair.files(part).first))
    let bytes = try Descriptor.open(path: file, [.readOnly]).contents()
    guard case .dictionary(let list) = try BinaryPropertyList.decode(bytes) else { return }
    let changed = PropertyListValue.dictionary(list.merging(keys) { $1 })
    // By a rename, as a carrier places a message.
    let next = try TemporaryDirectory()
    let new = try Descriptor.open(
      path: next.path + "/new", [.writeOnly, .create], mode: 0o600)
    try new.writeFully(BinaryEncoder().encode(changed))
    #expect(try run("mv", [next.path + "/new", file]).status == .exited(0))
  }

  private func keys(of file: String) throws -> [String: PropertyListValue] {
    let path = pair.meeting.path + "/members/" + file
    let bytes = try Descriptor.open(path: path, [.readOnly]).contents()
    guard case .dictionary(let list) = try BinaryPropertyList.decode(bytes) else { return [:] }
    return list.filter { ["origin", "redelivered"].contains($0.key) }
  }

  @Test(arguments: [[1], [1, 2]]) func aMessageThatMayHaveBeenHandledElsewhereIsMarked(
    _ numbers: [Int]
  ) throws {
    try pair.phone.send(contentsOf: numbers, .quick())
    try change("inbox", ["redelivered": .boolean(true), "origin": Self.origin])
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try heard.wait("all") { $0.count == numbers.count }
    receiving.stop()
    #expect(heard.all == numbers.map { Handed($0, marked: true) })
  }

  @Test func aMessageWithAnOriginIsLikeAnyOther() throws {
    for (number, origin) in [Self.origin, .string("x"), .array([]), .integer(-1)].enumerated() {
      try pair.phone.send(number, .quick())
      try change("inbox", ["origin": origin, "redelivered": .boolean(false)])
      let heard = Heard<Handed>()
      let receiving = try pair.watch.note(heard)
      try heard.wait("it") { $0.count == 1 }
      receiving.stop()
      #expect(heard.all == [Handed(number)])
    }
  }

  /// The receipt is the message's file; a dead letter of a batch is a file of its own.
  @Test func outcomesDeadLettersAndRetriesKeepBoth() throws {
    let both: [String: PropertyListValue] = ["redelivered": .boolean(true), "origin": Self.origin]
    try pair.phone.send(contentsOf: [1, 2], .quick { $0.wantsOutcome = true })
    try change("inbox", both)
    let refusing = try pair.watch.receive { _ in throw Refusal() }
    try eventually("both are dead letters") { try pair.phone.deadLetters.count == 2 }
    refusing.stop()
    let letters = try pair.files("dead").filter { !$0.hasSuffix(",reason") }
    #expect(letters.count == 2)
    for letter in letters { #expect(try keys(of: "watch/dead/" + letter) == both) }
    #expect(try pair.phone.retry(id: #require(pair.phone.deadLetters.first).id))
    let retried = try #require(pair.files("inbox").first)
    #expect(try keys(of: "watch/inbox/" + retried) == both)
  }
}
