import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole
@testable import WormholeContainerStorage

/// The forms of files, compared with the article that describes them and with a program in another
/// language.
@Suite(.blocking) struct FileRecordTests {
  private static let article = "../Sources/Wormhole/Wormhole.docc/TheDirectory.md"

  /// Each key of a form is a row of the article's table, and each row is a key.
  @Test(
    arguments: [
      ("is a channel's latest value, in an envelope:", Envelope.Header.fieldNames, ["value"]),
      (
        "The file is a dictionary, with a checksum like every other:",
        MessageFile.Header.fieldNames, ["value", "values"]
      ),
      ("A request or a message is a dictionary:", LiveFile.Header.fieldNames, ["value"]),
      (
        "A dictionary that is written when the container is made, and never again:",
        ContainerMarker.fieldNames, []
      ),
      ("is a dictionary and is changed like any value:", EpochRecord.fieldNames, []),
      ("`profile.plist` describes the latest process to join:", MemberProfile.fieldNames, []),
      ("and the state only moves forward. The file is a\ndictionary:", AccessEntry.fieldNames, []),
      ("and not a whole second. The file is a dictionary:", PresenterEntry.fieldNames, []),
      ("starts the program writes it first, under the slot's lock:", WakeRecord.fieldNames, []),
    ] as [(String, [String], [String])])
  func theArticleHasARowForEachKey(
    _ sentence: String, _ fields: [String], _ values: [String]
  ) throws {
    let text = try Fixture.text(Self.article)
    let parts = text.split(separator: sentence + "\n")
    try #require(parts.count == 2)
    let rows = parts[1].split(separator: "\n").prefix { $0.hasPrefix("|") }.dropFirst(2)
    let keys: [String] = rows.flatMap { row in
      row.split(separator: "|")[0].matches(of: /`([^`]+)`/).map { String($0.output.1) }
    }
    let place = "TheDirectory.md, the table below '\(sentence)'"
    for key in fields + values where !keys.contains(key) {
      Issue.record("\(place) has no row for the key `\(key)`")
    }
    for key in keys where !(fields + values).contains(key) {
      Issue.record("\(place) has a row for `\(key)`, which is not in the form")
    }
    #expect(Set(keys).count == keys.count, "\(place) has a row twice")
  }

  @Test func theExampleOfANameHasTheNamesForm() throws {
    let text = try Fixture.text(Self.article)
    let parts = text.split(separator: "stays the same from sending to the outcome:\n\n")
    try #require(parts.count == 2)
    let example = String(parts[1].prefix { $0 != "\n" }.drop { $0 == " " })
    let name = try #require(MessageName(example), "'\(example)'")
    #expect(!name.isUrgent && name.wantsReceipt && name.count == 1)
    #expect(name.id == "3f9a0c11d2e84b67" && name.senderName == "phone")
  }

  /// The program in Python uses no other keys.
  @Test func thePeerInPythonKnowsTheKeys() throws {
    let text = try Fixture.text("python/take_part.py")
    for (variable, fields) in [
      ("changed", Envelope.Header.fieldNames), ("message", MessageFile.Header.fieldNames),
    ] {
      let block = try #require(text.split(separator: "    \(variable) = {\n").dropFirst().first)
        .split(separator: "    }\n")[0]
      let keys = block.matches(of: /"([a-zA-Z]+)":/).map { String($0.output.1) }
      #expect(keys.count > 3)
      #expect(Set(fields + ["value"]).isSuperset(of: keys))
      #expect(keys.starts(with: fields.prefix(3)))
    }
  }

  /// A header with each of its fields is read as it was written, whatever else is in the file.
  @Test(arguments: [0, 20]) func everyFieldIsReadAsWritten(_ others: Int) throws {
    var header = MessageFile.Header(
      kind: "K", sent: .init(timeIntervalSinceReferenceDate: 1), to: "watch",
      expires: .init(timeIntervalSinceReferenceDate: 2), orderingKey: "seat",
      headers: try SenderHeaders(["a": "b"], "send", "watch"),
      file: MessageFile.FileHeader(name: "f", size: 3, checksum: 4, synced: true),
      origin: ["machine": "m"], isRedelivered: true)
    let full = try BinaryPropertyList.decode(BinaryEncoder().seal(header, 7))
    for name in MessageFile.Header.fieldNames where full[name] == nil {
      Issue.record("the header in everyFieldIsReadAsWritten has no value for '\(name)'")
    }
    for _ in 0..<2 {
      var list = try BinaryPropertyList.decode(BinaryEncoder().seal(header, 7))
      for number in 0..<others { list["other\(number)"] = .integer(Int64(number)) }
      let document = try MessageFile.Document(BinaryPropertyList.encode(list), BinaryDecoder())
      #expect(document.header == header)
      header = MessageFile.Header(kind: "K", sent: header.sent, to: "watch")
    }
  }

  /// A wrong field is refused by its name, in a small dictionary and in a large one.
  @Test(arguments: [0, 20]) func aWrongFieldIsRefused(_ others: Int) throws {
    let right: PropertyListValue = [
      "kind": "K", "sent": .date(.init(timeIntervalSinceReferenceDate: 1)), "to": "watch",
      "value": 7,
    ]
    for (key, value, reason) in [
      ("kind", nil, ": no key 'kind'"),
      ("to", 1, " at 'to': an integer where String is expected"),
      ("sent", "now", " at 'sent': a string where Date is expected"),
      ("expires", "now", " at 'expires': a string where Date is expected"),
      ("file", "f", " at 'file': a string where Dictionary<String, PropertyListValue> is expected"),
      ("redelivered", 1, " at 'redelivered': an integer where Bool is expected"),
    ] as [(String, PropertyListValue?, String)] {
      var list = right
      for number in 0..<others { list["other\(number)"] = .integer(Int64(number)) }
      list[key] = value
      let bytes = try BinaryPropertyList.encode(list)
      let error = #expect(throws: PropertyListError.self) {
        _ = try MessageFile.Document(bytes, BinaryDecoder())
      }
      #expect("\(try #require(error))" == "cannot read property list" + reason)
    }
  }

  // MARK: The forms of the storage

  /// A file of a form has each of the fields, and is read as it was written.
  private func expectEveryField<Record: FileRecord>(of record: Record, _ file: [UInt8]) throws {
    let written = try #require(try BinaryPropertyList.decode(file).dictionaryValue)
    for name in Record.fieldNames where written[name] == nil {
      Issue.record("\(Record.self) in FileRecordTests has no value for '\(name)'")
    }
    #expect(try record.entries() == written)
    #expect(try Record(file).entries() == written)
  }

  /// Files with one wrong field are refused, for the reason that is stated.
  private func expectRefusals<Record: FileRecord>(
    of sound: Record, _ wrong: [(String, PropertyListValue?, String)]
  ) throws {
    for (key, value, reason) in wrong {
      var entries = try sound.entries()
      entries[key] = value
      let file = try BinaryPropertyList.encode(.dictionary(entries))
      let error = #expect(throws: PropertyListError.self) { _ = try Record(file) }
      let found = try #require(error, "'\(key)' is read")
      #expect("\(found)" == "cannot read property list" + reason)
    }
  }

  @Test func theMarkerOfAContainerIsAForm() throws {
    let full = ContainerMarker(format: 1, id: "abc", created: 2.5, epoch: 7, sharing: .group)
    try expectEveryField(of: full, full.encoded())
    let old = try ContainerMarker(
      BinaryPropertyList.encode(["format": 1, "id": "abc", "created": 2]))
    #expect(old == ContainerMarker(format: 1, id: "abc", created: 2))
    try expectRefusals(
      of: full,
      [
        ("format", nil, ": no key 'format'"),
        ("format", "one", " at 'format': a string where Int is expected"),
        ("format", 0, " at 'format': 0 is not a format"),
        ("id", 1, " at 'id': an integer where String is expected"),
        ("created", .real(.infinity), " at 'created': inf is not a time"),
        ("epoch", 0x100000, " at 'epoch': 1048576 is not an epoch"),
        ("epoch", -1, " at 'epoch': -1 is not an epoch"),
        ("sharing", "all", " at 'sharing': neither 'owner' nor 'group'"),
        ("sharing", 1, " at 'sharing': an integer where String is expected"),
      ])
  }

  @Test func theEpochIsAForm() throws {
    let full = EpochRecord(epoch: 7, boots: ["a", "b"], clock: 9, isUndecided: true)
    try expectEveryField(of: full, full.encoded())
    try expectRefusals(
      of: full,
      [
        ("epoch", nil, ": no key 'epoch'"),
        ("epoch", 0x100000, " at 'epoch': 1048576 is not an epoch"),
        ("epoch", -1, " at 'epoch': -1 is not an epoch"),
        ("boots", ["a", 1], " at 'boots[1]': an integer where String is expected"),
        (
          "boots", .array(Array(repeating: "a", count: 65)),
          " at 'boots': 65 names are too many"
        ),
        ("clock", -1, " at 'clock': -1 is not a time"),
        ("clock", nil, ": no key 'clock'"),
        ("undecided", 1, " at 'undecided': an integer where Bool is expected"),
        ("undecided", nil, ": no key 'undecided'"),
      ])
  }

  @Test func theStartOfAMemberIsAForm() throws {
    let full = WakeRecord(
      id: "1", started: 2, by: "till", program: "app", machine: "m", before: "b", process: 3,
      namespace: .max, ticks: 4, failed: 5, failure: "it ended", ended: 6)
    try expectEveryField(of: full, full.encoded())
    #expect(try full.encoded() == BinaryEncoder().encode(EarlierWake()))
    let first = WakeRecord(id: "1", started: 2, by: "till", program: "app")
    #expect(try WakeRecord(first.encoded()) == first)
    try expectRefusals(
      of: full,
      [
        ("id", nil, ": no key 'id'"),
        ("id", 1, " at 'id': an integer where String is expected"),
        ("started", -1, " at 'started': -1 is not a time"),
        ("by", nil, ": no key 'by'"),
        ("program", nil, ": no key 'program'"),
        ("machine", 1, " at 'machine': an integer where String is expected"),
        ("before", 1, " at 'before': an integer where String is expected"),
        ("process", 0, " at 'process': 0 is not a process"),
        ("process", 0x8000_0000, " at 'process': a number not representable as Int32"),
        ("namespace", -1, " at 'namespace': a number not representable as UInt64"),
        ("ticks", "now", " at 'ticks': a string where UInt64 is expected"),
        ("failed", -1, " at 'failed': -1 is not a number of starts"),
        ("failed", .integer(.max), " at 'failed': \(Int.max) is not a number of starts"),
        ("failure", 1, " at 'failure': an integer where String is expected"),
        ("ended", -1, " at 'ended': -1 is not a time"),
      ])
  }

  @Test func theProfileOfAMemberIsAForm() throws {
    let since = Date(timeIntervalSinceReferenceDate: 1)
    let incarnation = try #require(Incarnation(rawValue: "0123456789abcdef"))
    let carried = MemberProfile(
      of: "phone", incarnation, program: "app", since: since, info: ["a": "b", "c": "d"])
    try expectEveryField(of: carried, carried.encoded())
    #expect(try MemberProfile(carried.encoded()) == carried)
    var own = carried
    own.isCarried = false
    let identity = ProcessIdentity.current
    let entries: [String: PropertyListValue] = [
      "name": "phone", "incarnation": "0123456789abcdef",
      "process": .integer(Int64(identity.process)), "namespace": .unsigned(identity.namespace),
      "started": .unsigned(identity.started), "program": "app", "since": .date(since),
      "info": ["a": "b", "c": "d"],
    ]
    #expect(try own.encoded() == BinaryPropertyList.encode(.dictionary(entries)))
    try expectRefusals(
      of: own,
      [
        ("incarnation", nil, ": no key 'incarnation'"),
        ("incarnation", "../x", " at 'incarnation': an incarnation has 16 hexadecimal digits"),
        ("process", 0, " at 'process': 0 is not a process"),
        ("process", 0x8000_0000, " at 'process': a number not representable as Int32"),
        ("namespace", -1, " at 'namespace': a number not representable as UInt64"),
        ("started", "now", " at 'started': a string where UInt64 is expected"),
        ("program", nil, ": no key 'program'"),
        ("since", 1, " at 'since': an integer where Date is expected"),
        ("info", ["a": 1], " at 'info.a': an integer where String is expected"),
        ("info", nil, ": no key 'info'"),
      ])
  }

  /// The name is the directory's, and only a carrier's profile has the key `carried`.
  @Test func aProfileIsReadWithoutItsNameAndItsCarrier() throws {
    let incarnation = try #require(Incarnation(rawValue: "0123456789abcdef"))
    let profile = MemberProfile(
      of: "phone", incarnation, program: "a/p", since: .distantPast, info: [:])
    for (name, carried) in [(nil, nil), (1, 1), ("watch", false)]
      as [(PropertyListValue?, PropertyListValue?)]
    {
      var entries = try profile.entries()
      entries["name"] = name
      entries["carried"] = carried
      let bytes = try BinaryPropertyList.encode(.dictionary(entries))
      let found = try #require(MemberProfile(bytes, name: "phone"))
      #expect(found.name == "phone" && !found.isCarried)
      #expect(found.program == "ap", "only harmless characters")
    }
  }

  @Test func aPresenterIsAForm() throws {
    let full = PresenterEntry(
      [AccessPath("/a"), AccessPath("/b")], purpose: "x", guest: "0123456789abcdef",
      mindsReaders: false)
    try expectEveryField(of: full, full.encoded())
    let entries: [String: PropertyListValue] = [
      "paths": ["/a", "/b"], "purpose": "x", "guest": "0123456789abcdef", "mindsReaders": false,
    ]
    #expect(try full.encoded() == BinaryPropertyList.encode(.dictionary(entries)))
    for minds: PropertyListValue? in [nil, true, 1] {
      var other = entries
      other["mindsReaders"] = minds
      let file = try BinaryPropertyList.encode(.dictionary(other))
      #expect(try PresenterEntry(file).mindsReaders)
    }
    try expectRefusals(
      of: full,
      [
        ("paths", nil, ": no key 'paths'"),
        ("paths", [], " at 'paths': a presenter has absolute paths"),
        ("paths", ["/a", "b"], " at 'paths': a presenter has absolute paths"),
        ("paths", ["/a", 1], " at 'paths[1]': an integer where String is expected"),
        ("purpose", nil, ": no key 'purpose'"),
        ("guest", "../x", " at 'guest': a guest has 16 hexadecimal digits"),
      ])
  }

  @Test func anAccessIsAForm() throws {
    let parts = [
      ClaimedPath(AccessPath("/a"), writes: true), ClaimedPath(AccessPath("/b"), writes: false),
    ]
    let full = AccessEntry(
      claim: AccessClaim(parts, purpose: "x"), held: [AccessToken(container: "c", name: "n")],
      hidden: ["/h"], identity: "0123456789abcdef", owner: 7)
    try expectEveryField(of: full, full.encoded())
    #expect(try full.encoded() == BinaryEncoder().encode(EarlierAccess()))
    let read = try #require(try AccessEntry(full.encoded(), owner: 8))
    #expect(read.claim == full.claim && read.held == full.held && read.owner == 8)
    try expectRefusals(
      of: full,
      [
        ("paths", nil, ": no key 'paths'"),
        ("paths", ["/a", 1], " at 'paths[1]': an integer where String is expected"),
        ("writes", nil, ": no key 'writes'"),
        ("writes", [true], " at 'writes': 1 values for 2 paths"),
        ("writes", [true, 1], " at 'writes[1]': an integer where Bool is expected"),
        ("purpose", nil, ": no key 'purpose'"),
      ])
  }

  /// Other accesses wait for an access also if they cannot read the keys that few accesses have.
  @Test func anAccessIsReadWithoutTheKeysThatFewHave() throws {
    let list: PropertyListValue = ["paths": ["/a"], "writes": [true], "purpose": "x"]
    for (held, hidden, identity) in [(nil, nil, nil), (1, 1, 1), ([["c"]], [1], "../x")]
      as [(PropertyListValue?, PropertyListValue?, PropertyListValue?)]
    {
      var other = list
      other["held"] = held
      other["hidden"] = hidden
      other["identity"] = identity
      let file = try BinaryPropertyList.encode(other)
      let entry = try #require(AccessEntry(file, owner: 0))
      #expect(entry.claim.parts == [ClaimedPath(AccessPath("/a"), writes: true)])
      #expect(entry.held == [] && entry.hidden == [] && entry.identity == nil)
    }
  }
}

/// An access as earlier versions wrote it.
private struct EarlierAccess: Encodable {
  let paths = ["/a", "/b"]
  let writes = [true, false]
  let purpose = "x"
  let held = [["c", "n"]]
  let hidden = ["/h"]
  let identity = "0123456789abcdef"
}

/// The start of a member as earlier versions wrote it.
private struct EarlierWake: Encodable {
  let id = "1"
  let started: Int64 = 2
  let by = "till"
  let program = "app"
  let machine = "m"
  let before = "b"
  let process: Int32 = 3
  let namespace = UInt64.max
  let ticks: UInt64 = 4
  let failed = 5
  let failure = "it ended"
  let ended: Int64 = 6
}
