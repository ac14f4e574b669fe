import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole
@testable import WormholeCommand

/// `wormhole dump` and `wormhole restore`.
@Suite(.blocking, .notSanitized("about what a command prints")) struct DumpVerbTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  private static let other = "WORMHOLE_CONTAINER=\"$STAGE/copy\" wormhole"
  /// Removes the parts of a dump that differ in the copy.
  private static let same =
    #"sed -E 's/"(version|container|writtenAt|writer|sent|failedAt|notBefore)""#
    + #":("[^"]*"|[0-9]+),?//g'"#

  @Test func theCopyHasTheSameValues() throws {
    _ = try stage.done(
      """
      wormhole put film 'Back to the Future'; wormhole put n 2.5 --type json
      wormhole put whole 18446744073709551615 --type json; printf '\\377\\0' | wormhole put photo
      echo '{"type":"data","value":[{"$date":"2026-01-31T09:30:00.5Z"},{"$real":"nan"}]}' >odd
      wormhole put odd --type json <odd
      wormhole put plan --type json '{"days":[{"$date":"2026-01-31T09:30:00.5Z"}]}'
      wormhole put gone 1; wormhole clear gone --erase; wormhole put 'a b/ü' yes
      wormhole defaults write cinema rows 12 --type json; wormhole defaults write cinema name Rex
      wormhole dump >first; \(Self.other) restore <first; \(Self.other) dump >second
      """)
    #expect(try stage.done("\(Self.same) first") == stage.done("\(Self.same) second"))
    let dump = try stage.done("cat first")
    #expect(dump.contains(#""value":{"type":"data","value":"/wA="}"#))
    #expect(dump.contains(#"{"type":"date","value":"2026-01-31T09:30:00.500Z"}"#))
    #expect(dump.contains(#"{"type":"dictionary","value":{"type":"data","value":["#))
    #expect(dump.contains(#"{"type":"real","value":"nan"}"#))
    #expect(dump.hasSuffix("{\"end\":[7,1,0]}\n"))
    #expect(try stage.done("\(Self.other) get photo | od -An -tx1") == " ff 00\n")
    for name in ["odd", "plan"] {
      #expect(try stage.done("wormhole get \(name)") == stage.done("\(Self.other) get \(name)"))
    }
    #expect(try stage.run("\(Self.other) get gone").status == .exited(1))
  }

  @Test func aValueExpiresWhenItWouldHave() throws {
    _ = try stage.done(
      """
      wormhole put film x --ttl 1h; wormhole put short y --ttl 1s; wormhole put other z
      wormhole dump >early; wormhole put film x --ttl 2h
      until wormhole dump >late && ! grep -q short late; do sleep 0.2; done
      \(Self.other) restore --replace <early; \(Self.other) put film old
      \(Self.other) restore --replace <late
      """)
    let moment = try stage.done("wormhole get film --json").firstMatch(of: /"expiresAt":"[^"]*"/)
    #expect(try stage.done("cat late").contains(#require(moment).0))
    #expect(try stage.done("\(Self.other) get film --json").contains(#require(moment).0))
    #expect(try !stage.done("\(Self.other) get other --json").contains(#""expiresAt":""#))
    #expect(try stage.run("\(Self.other) get short").status == .exited(1))
    let refused = try stage.run("\(Self.other) restore <late")
    #expect(refused.status == .exited(75))
    let fresh = "WORMHOLE_CONTAINER=\"$STAGE/fresh\" wormhole"
    #expect(
      try stage.done("\(fresh) restore <late; \(fresh) get film --json").contains(
        #require(moment).0))
  }

  /// The copy of a message has each key of a header, except the note of the program that carries
  /// messages between machines.
  @Test func aDumpLosesNoKeyOfAHeader() throws {
    _ = try stage.done(
      """
      set -e; printf x >f
      wormhole send --queue jobs --file f --kind Order --header a=b --ordering-key k --ttl 1h
      wormhole dump --messages >dump; \(Self.other) restore <dump
      """)
    let inbox = try Descriptor.open(
      path: "\(stage.directory.path)/copy/queues/jobs/inbox", [.readOnly, .directory])
    let names = try inbox.names()
    try #require(names.count == 1, "\(names)")
    let list = try BinaryPropertyList.decode(inbox.open(names[0], [.readOnly]).contents())
    for key in MessageFile.Header.fieldNames where key != "\(MessageFile.origin)" {
      #expect(list[key] != nil, "PortableMessage, or DumpLine, loses the key '\(key)'")
    }
  }

  /// Nothing is shared in a line, so both limits count the same objects.
  @Test func aLineMayHaveTheObjectsThatTheLargestValueNeeds() {
    let most = 5 * PropertyListLimits.default.reached
    #expect(min(DumpLine.limits.objects, DumpLine.limits.reached) > most)
  }

  private func delay(in dump: String) -> Date? {
    dump.firstMatch(of: /"notBefore":"([^"]*)"/).flatMap { DumpValue.date(String($0.1)) }
  }

  @Test func messagesComeInTheOldOrder() throws {
    _ = try stage.done(
      """
      printf 'b\\nc\\n' | wormhole send --to till --lines
      wormhole send --to till --urgent --id first --kind Order --header a=b --from office 'a'
      printf 'a file' >'with name.txt'; wormhole send --to till --file 'with name.txt' --meta k=v
      wormhole send --to till --delay 3600 --id later d
      wormhole send --to till --ttl 1000 e; wormhole send --to till --ttl 0.01 expired; sleep 0.1
      printf 'one\\ntwo\\n' | wormhole send --queue jobs --lines
      wormhole send --queue jobs --ordering-key k --id keyed three
      wormhole send --to grave --id bad dead; wormhole send --to grave fine
      wormhole receive --as grave --attempts 1 --count 1 --quiet \
      --exec '[ $(cat) = fine ] || exit 3'
      wormhole dump --messages >first; \(Self.other) restore <first
      \(Self.other) dump --messages >second
      """)
    #expect(try stage.done("\(Self.same) first") == stage.done("\(Self.same) second"))
    let dump = try stage.done("cat first")
    #expect(dump.contains("\"piece\":\"YSBmaWxl\""))
    #expect(!dump.contains("\"value\":\"expired\""))
    // A date is precise to a part of a microsecond, and the time of a file's name to nanoseconds.
    let due = try #require(delay(in: dump))
    let later = try #require(delay(in: stage.done("cat second")))
    #expect(abs(later.timeIntervalSince(due)) < 0.001)
    let lines = try stage.done(
      "\(Self.other) receive --as till --count 5 --timeout 60 --files . --format '%p %r %k %P %f'"
    ).split(separator: "\n")
    #expect(lines.first == #"a 1 Order {"a":"b"} office"#)
    #expect(lines.dropFirst().map { $0.split(separator: " ")[0] } == ["b", "c", "./with", "e"])
    #expect(lines.filter { $0.contains(" 1 ") }.count == 5, "\(lines)")
    #expect(try stage.done("cat 'with name.txt.1'") == "a file")
    #expect(try stage.done("\(Self.other) queue till | cut -f 1") == "later\n")
    let dead = try stage.done("\(Self.other) queue grave --dead | cut -f 1,5,7")
    #expect(dead == "bad\t1\tthe command ended with status 3\n")
    let work = "work jobs --count 3 --timeout 60 --exec 'cat >>done'"
    #expect(try stage.done("\(Self.other) \(work); cat done") == "one\ntwo\nthree\n")
  }

  /// A value that must survive a power cut is not restored if it cannot be synced.
  @Test(arguments: ["", "--replace "])
  func whatIsRestoredIsSyncedOnRequest(_ option: String) throws {
    _ = try stage.done("wormhole put a 1; wormhole dump >d; \(Self.other) put b 2")
    let refused = try stage.run(
      "\(Self.other) restore \(option)--power <d",
      environment: ["WORMHOLE_FAULTS=fsync@1+:before:fail=EIO"])
    #expect(refused.status != .exited(0))
    #expect(refused.errors.contains("'a'"), "\(refused.errors)")
    #expect(try stage.run("\(Self.other) get a").status == .exited(1))
  }

  @Test func channelsWithAValueAreNotReplaced() throws {
    _ = try stage.done(
      """
      wormhole put a 1; wormhole put b 2; wormhole dump >d
      \(Self.other) put b old; \(Self.other) put b older
      """)
    let refused = try stage.run("\(Self.other) restore <d")
    #expect(refused.status == .exited(75))
    #expect(refused.errors.contains("line 2: the channel has a value; replace"))
    #expect(try stage.run("\(Self.other) get a").status == .exited(1))
    #expect(try stage.done("\(Self.other) get b") == "older\n")
    #expect(try stage.done("\(Self.other) restore --replace <d && \(Self.other) get b") == "2\n")
    #expect(try stage.done("\(Self.other) get b --json").contains(#""version":3"#))
    // A channel that was removed or cleared has none, and its versions continue.
    _ = try stage.done(
      "\(Self.other) clear a; \(Self.other) remove channel b; \(Self.other) restore <d")
    #expect(try stage.done("\(Self.other) get a --json").contains(#""version":3"#))
    let version = try stage.done("\(Self.other) get b --json").firstMatch(of: /"version":([0-9]+)/)
    #expect(try #require(version.flatMap { Int($0.1) }) > 3)
  }

  @Test func nothingAfterABadLineIsDone() throws {
    let lines = [
      "not JSON", "[]", "{}", #"{"channel":"x"}"#,
      #"{"channel":"x","value":{"type":"z","value":1}}"#,
      #"{"message":"m","to":"t"}"#, #"{"piece":"YQ=="}"#, #"{"wormhole":2}"#,
      #"{"message":"m","to":"t","kind":"k","file":{"name":"../x","size":1}}"#,
    ]
    for (index, line) in lines.enumerated() {
      let (before, after) = (
        "{\"channel\":\"before\(index)\",\"value\":1}", #"{"channel":"after","value":1}"#
      )
      try stage.directory.write("\(before)\n\(line)\n\(after)\n", to: "d")
      let outcome = try stage.run("wormhole restore <d")
      #expect(outcome.status == .exited(65), "\(line): \(outcome.errors)")
      #expect(outcome.errors.contains("cannot restore line 2: "), "\(outcome.errors)")
      #expect(try stage.done("wormhole get before\(index)") == "1\n")
      #expect(try stage.run("wormhole get after").status == .exited(1))
    }
    try stage.directory.write("{\"channel\":\"last\",\"value\":1}\n", to: "d")
    let cut = try stage.run("wormhole restore <d")
    #expect(cut.status == .exited(0))
    #expect(cut.errors == "wormhole: the dump has no last line, and may be incomplete\n")
  }

  /// Nothing is kept per channel but its name.
  @Test func theMemoryIsBounded() throws {
    let count = TestRun.isLong ? 100_000 : 500
    let text = String(repeating: "x", count: 500)
    var dump = "{\"wormhole\":1}\n"
    for index in 0..<count { dump += "{\"channel\":\"c\(index)\",\"value\":\"\(index)\(text)\"}\n" }
    try stage.directory.write(dump + "{\"end\":[\(count),0,0]}\n", to: "d")
    let begin = Instant.now
    let restored = try MemoryUse("wormhole restore", input: "d", in: stage)
    let middle = Instant.now
    let dumped = try MemoryUse("wormhole dump", output: "again", in: stage)
    let end = Instant.now
    #expect(try stage.done("wc -l <again") == "\(count + (count + 999) / 1000 + 2)\n")
    // The size of the dump is 50 MB in the long run, and the names take a few.
    let limit = TestRun.isLong ? 96 << 10 : 64 << 10
    #expect(restored.kibibytes < limit, "restore took \(restored.kibibytes) KiB")
    #expect(dumped.kibibytes < limit, "dump took \(dumped.kibibytes) KiB")
    guard TestRun.isLong else { return }
    print(
      "\(count) channels: restore \(middle - begin), \(restored.kibibytes) KiB; "
        + "dump \(end - middle), \(dumped.kibibytes) KiB")
  }

  /// Values of types that JSON lacks come back, and dictionaries that look like such values.
  @Test func valuesComeBackAsTheyWere() throws {
    let values: [PropertyListValue] = [
      .data(Data([0, 255])), .date(Date(timeIntervalSince1970: 1.5)), .real(2), .real(.infinity),
      .date(Date(timeIntervalSinceReferenceDate: 1e300)), .unsigned(.max), .string("$null"),
      .dictionary(["type": .string("data"), "value": .string("x")]),
      .dictionary(["type": .integer(1), "value": .array([.data(Data())])]),
      .dictionary(["$date": .string("x")]), .array([.boolean(true), .integer(-1)]),
      .dictionary(["type": .string("a"), "value": .integer(1), "more": .integer(2)]),
    ]
    for value in values {
      let text = try JSONPropertyList.encode(DumpValue.written(value))
      let read = try DumpValue.read(JSONPropertyList.decode(Array(text.utf8)))
      #expect(read == value, "\(text)")
    }
  }
}
