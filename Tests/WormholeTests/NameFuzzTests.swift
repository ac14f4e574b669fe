import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Names that people choose, and names of foreign files: any possible bytes.
///
/// `WORMHOLE_FUZZ` sets the number of names; `WORMHOLE_SEED` repeats a run with the same names.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct NameFuzzTests {
  private static var count: Int {
    Processes.environment("WORMHOLE_FUZZ").flatMap { Int($0) } ?? 1500
  }

  private static let seed = TestRun.seed

  /// Bytes with a meaning in some kind of name, and bytes without any meaning.
  private static let pieces: [String] = [
    "a", "Z", "0", ".", "..", "/", "\\", "%", "%2", "%2F", "%2f", "%41", "%00", "~", "~0", "~1",
    "~999", "~1000", ",", ",,", "-", "_", " ", "\n", "\0", "\u{7f}", "é", "e\u{301}", "ß", "🎬",
    "\u{202e}", "\u{feff}", ".ok", ".dead", ".cancelled", ",reason", "next", "0,", "1,", ",r01,",
    ",n40,", ",a00,", ",f01,", "00001", "fffff", "00001000000001", "ffffffffffffff", "phone",
  ]

  private func name(_ random: inout SeededRandom) -> String {
    let count = Int.random(
      in: 0...(Int.random(in: 0..<8, using: &random) == 0 ? 90 : 8), using: &random)
    return (0..<count).map { _ in Self.pieces.randomElement(using: &random)! }.joined()
  }

  /// A name of the library's own form, with up to three bytes changed, inserted or removed.
  private func almostOurs(_ random: inout SeededRandom) -> String {
    let ours = MessageName(
      isUrgent: .random(using: &random),
      MessageStamp(
        epoch: .random(in: 0..<1 << 20, using: &random),
        nanoseconds: .random(in: 0..<1 << 60, using: &random)),
      wantsReceipt: .random(using: &random), count: .random(in: 1..<256, using: &random),
      id: "3f9a0c11d2e84b67", key: [nil, OrderingKey(of: "a")].randomElement(using: &random)!,
      from: ["", "phone", "%2Fa", "~0011223344556677"].randomElement(using: &random)!)
    let ends = [
      "", "~0", "~00", "~1", "~01", "~02", "~999", "~0.1", "~7.zz", ".ok", ".dead", ".cancelled",
      ".expired", ",reason",
    ]
    var bytes = Array((ours.text + ends.randomElement(using: &random)!).utf8)
    for _ in 0..<Int.random(in: 0..<4, using: &random) {
      let place = Int.random(in: 0..<bytes.count, using: &random)
      let piece = Array(Self.pieces.randomElement(using: &random)!.utf8)
      switch Int.random(in: 0..<3, using: &random) {
      case 0: bytes[place] = .random(in: 1...255, using: &random)
      case 1: bytes.insert(contentsOf: piece, at: place)
      default: bytes.remove(at: place)
      }
      if bytes.isEmpty { break }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Returns the fault in the conversion of a chosen name to a file's name and back; nil for none.
  private func judge(name: String) -> String? {
    guard let file = try? EscapedName.escape(name) else {
      return name.isEmpty || name.utf8.count * 3 > EscapedName.limit ? nil : "it has no form"
    }
    if file.utf8.count > EscapedName.limit { return "its form is too long" }
    if file.hasPrefix(".") || file.contains("/") { return "its form is no plain name: '\(file)'" }
    guard let back = EscapedName.unescape(file), back.utf8.elementsEqual(name.utf8) else {
      return "'\(file)' does not lead back to it"
    }
    return nil
  }

  /// Returns the fault in the reading of a file's name of any origin; nil for none.
  private func judge(file: String) -> String? {
    if let name = EscapedName.unescape(file) {
      let again = try? EscapedName.escape(name)
      if again?.utf8.elementsEqual(file.utf8) != true { return "it is a second form of '\(name)'" }
    }
    if let name = MessageName(file), let broken = judge(message: name, file) { return broken }
    if let claimed = ClaimedName(file) {
      let again = ClaimedName(
        claimed.name, attempt: claimed.attempt, isInterrupted: claimed.isInterrupted,
        claim: claimed.claim)
      if again.text != file || claimed != again { return "it is another claim than it says" }
    }
    if let receipt = ReceiptName(file), receipt.text != file {
      return "it is another receipt than it says"
    }
    if let delayed = DelayedName(file) {
      let now = MessageStamp(epoch: 7, nanoseconds: 1)
      guard delayed.due >= 0, MessageName(delayed.arrived(at: now).text) != nil else {
        return "it is delayed and has no name later"
      }
    }
    _ = MessageName.messages(ofFile: file)
    return nil
  }

  private func judge(message name: MessageName, _ file: String) -> String? {
    let again = MessageName(
      isUrgent: name.isUrgent, name.stamp, wantsReceipt: name.wantsReceipt, count: name.count,
      id: name.escapedIdentifier, key: name.key, from: name.escapedSender)
    guard name.text.utf8.elementsEqual(file.utf8) else { return "it changes when it is read" }
    guard again.text == file || name.isRetried else { return "it says '\(again.text)'" }
    guard MessageName(name.retried.text) != nil else { return "tried again it is none of ours" }
    guard MessageName.messages(ofFile: name.fileName)?.contains(file) == true else {
      return "its file does not lead back to it"
    }
    guard name.count > 0, !name.id.isEmpty else { return "it is empty" }
    _ = (name.sender, name.reasonFile, name.digest, name.part(0), name < again)
    return nil
  }

  @Test func namesLeadToFilesAndBack() {
    var random = SeededRandom(seed: Self.seed)
    for number in 0..<Self.count {
      let (name, file) = (name(&random), almostOurs(&random))
      let broken = judge(name: name) ?? judge(file: name) ?? judge(file: file)
      if let broken {
        Issue.record(
          "\(broken): \([name, file].debugDescription), case \(number); WORMHOLE_SEED=\(Self.seed)"
        )
        return
      }
    }
  }

  /// Names that caused a fault once, and names that are likely to cause one.
  @Test func namesThatWereTroubleAreNone() throws {
    for line in try Fixture.text("fuzz/names.txt").split(separator: "\n") {
      let name = try #require(EscapedLine.read(line), "\(line)")
      #expect(judge(name: name) == nil && judge(file: name) == nil, "\(line)")
    }
  }

  /// Two names that look the same, and that Swift calls equal, are two names.
  @Test(arguments: [
    ("é", "e\u{301}"), ("s\u{323}\u{307}", "s\u{307}\u{323}"),
    ("한", "\u{1112}\u{1161}\u{11ab}"),
  ])
  func namesThatSwiftCallsEqualAreTwo(_ one: String, _ other: String) throws {
    #expect(one == other)
    let folder = try TemporaryDirectory()
    let container = try SharedContainer(directory: folder.path + "/c", options: Options())
    try container.channel(one, of: Int.self).put(1)
    try container.channel(other, of: Int.self).put(2)
    #expect(try container.channel(one, of: Int.self).value == 1)
    #expect(try container.channel(other, of: Int.self).value == 2)
    #expect(try folder.descriptor.open("c/channels", [.readOnly, .directory]).names().count == 2)
    let (first, second) = (try container.join(as: one), try container.join(as: other))
    try first.peer(other).send("to the second")
    #expect(try container.peer(other).queue.count == 1)
    #expect(try container.peer(one).queue.isEmpty)
    first.leave()
    second.leave()
  }
}

/// A line of a fixture: `\xNN` stands for a byte, everything else for itself.
enum EscapedLine {
  static func read(_ line: some StringProtocol) -> String? {
    var bytes: [UInt8] = []
    var rest = line.utf8[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\") else {
        bytes.append(byte)
        continue
      }
      guard rest.popFirst() == UInt8(ascii: "x"), rest.count >= 2,
        let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(value)
      rest = rest.dropFirst(2)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
