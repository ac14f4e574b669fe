import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeBridge

/// P9 for numbers between machines: one number in a bridge's own files, or in what another machine
/// has sent, is extreme, and does not end the bridge.
@Suite(.blocking) struct ExtremeFlowTests {
  private let machines: TwoMachines
  private static let (hereName, thereName) = (TwoMachines.hereName, TwoMachines.thereName)

  init() throws { machines = try TwoMachines() }

  // MARK: The bridge's own files

  /// Leaves both bridges in the middle of their work: with records, pieces and staged messages.
  private func leave() throws -> [FlowBundle] {
    for number in 1...3 { try machines.send(number) { $0.wantsOutcome = true } }
    let file = machines.folder.path + "/file"
    try machines.folder.write(String(repeating: "x", count: 3 * FlowPiece.bytes), to: "file")
    var options = SendOptions()
    options.durability = .process
    _ = try machines.sender.peer("bob").send(file: file, metadata: 4, options)
    let bundles = try machines.published()
    try machines.receive(Array(bundles.prefix(1)))
    machines.kill()
    return bundles
  }

  /// A copy of both machines, as their next bridges find them.
  private final class Copy {
    let path: String
    init(_ machines: TwoMachines, _ number: Int) throws {
      path = machines.folder.path + "/copy\(number)"
      try Descriptor.makeDirectory(path: path, mode: 0o700)
      for side in ["here", "there"] {
        let copied = try run("cp", ["-a", "\(machines.folder.path)/\(side)", "\(path)/\(side)"])
        #expect(copied.status == .exited(0), "\(copied.errors)")
      }
    }
    deinit { _ = try? run("rm", ["-r", path]) }

    /// What the bridges do after they have started.
    func carry(_ bundles: [FlowBundle]) throws {
      let here = try TwoMachines.Side(hereName, thereName, path + "/here")
      let there = try TwoMachines.Side(thereName, hereName, path + "/there")
      _ = try here.published()
      _ = here.out.oldest
      if let position = there.incoming.position { try? here.out.confirm(position) }
      try here.out.finish()
      _ = try there.receive(bundles)
      _ = try there.published()
      if let position = there.incoming.position { try here.out.confirm(position) }
      try here.out.finish()
      _ = try here.published()
    }
  }

  private func files() throws -> [String] {
    try run("find", [machines.folder.path, "-type", "f", "-path", "*/bridge/*"]).output
      .split(separator: "\n").map { String($0.dropFirst(machines.folder.path.count)) }.sorted()
  }

  @Test func noNumberOfTheBridgesOwnFilesIsTrusted() throws {
    let bundles = try leave()
    var changes: [(file: String, list: ExtremeNumber.Variant)] = []
    for file in try files() {
      let bytes = try Descriptor.open(path: machines.folder.path + file, [.readOnly]).contents()
      guard let list = try? BinaryPropertyList.decode(bytes) else { continue }
      changes += ExtremeNumber.variants(of: list).map { (file, $0) }
    }
    let places = Set(changes.map { $0.list.place.split(separator: ".").last })
    for place in ["first", "next", "number", "generation", "n", "index", "size"] {
      #expect(places.contains(place[...]), "\(places)")
    }
    var random = SeededRandom(seed: TestRun.seed)
    // All that is great or small as an integer can be, and a share of the rest.
    let (first, rest) = (
      changes.filter { [.integer(.min), .integer(.max)].contains($0.list.number) },
      changes.filter { ![.integer(.min), .integer(.max)].contains($0.list.number) }
    )
    let drawn = TestRun.isLong ? rest : Array(rest.shuffled(using: &random).prefix(10))
    for (number, change) in (first + drawn).enumerated() {
      let copy = try Copy(machines, number)
      let file = try Descriptor.open(path: copy.path + change.file, [.writeOnly, .truncate])
      try file.write(BinaryEncoder().encode(change.list.list))
      // An error is as good as success.
      try? copy.carry(bundles)
    }
  }

  /// The lines and rows of people, and of the page in a browser.
  @Test func noNumberOfAStatusIsTrusted() throws {
    let status: PropertyListValue = [
      "machine": "000000000000000a", "group": "g", "state": "serving", "generation": 3,
      "at": .date(Date()), "process": 1, "clock": 2.5,
      "machines": [
        "0123456789abcdef": [
          "next": 5, "confirmed": 2, "received": 7, "gaps": 1, "running": 2,
          "oldest": .date(Date()), "interval": 1.0,
        ]
      ],
      "channels": ["far": ["version": 3, "published": 2]], "queues": ["jobs": ["lent": 3]],
    ]
    let folder = try BridgeFolder(of: machines.here.storage)
    for variant in ExtremeNumber.variants(of: status) {
      try folder.write(Bridge.statusName, variant.list, sync: false)
      let status = try #require(try BridgeStatus.read(machines.here))
      #expect(status.rows.count == 4 && status.lines.count == 4, "\(variant)")
    }
  }

  // MARK: What another machine sends

  @Test func noNumberOfABundleIsTrusted() throws {
    let bundles = try leave()
    let lists = try bundles.map { try BinaryPropertyList.decode($0.encoded() ?? []) }
    let variants = lists.flatMap { ExtremeNumber.variants(of: $0) }
    #expect(variants.count > 20)
    for (number, variant) in variants.enumerated() {
      guard let bundle = FlowBundle(try BinaryEncoder().encode(variant.list)) else { continue }
      let copy = try Copy(machines, number)
      try? copy.carry(bundles + [bundle])
      try? copy.carry([bundle])
    }
  }

  /// Calls the body with the bytes of each variant.
  private func vary(_ bytes: [UInt8]?, _ body: ([UInt8]) throws -> Void) throws {
    let list = try BinaryPropertyList.decode(try #require(bytes))
    let variants = ExtremeNumber.variants(of: list)
    try #require(!variants.isEmpty)
    for variant in variants { try body(try BinaryEncoder().encode(variant.list)) }
  }

  @Test func noNumberOfARequestIsTrusted() throws {
    let incarnation = try #require(Incarnation(rawValue: "0123456789abcdef"))
    let question = CarriedQuestion(
      .question, to: "bob", incarnation, from: nil, nil, kind: "Int", headers: [:], 1)
    try vary(RequestTraffic.bytes(question, left: 1000, at: 1000)) { bytes in
      let list = try BinaryPropertyList.decode(bytes)
      for now in [nil, .min, 0, 1_700_000_000_000_000_000, .max] as [Int64?] {
        guard let (_, left) = RequestTraffic.question(list, now: now) else { continue }
        let begun = Instant.now
        #expect(left >= .zero && begun + left >= begun)
      }
    }
  }

  @Test func noNumberOfABeatIsTrusted() throws {
    let bytes = Heartbeat.bytes(
      generation: 1, [], full: [], channels: ["c": 1],
      work: ["q": WorkerStatement(home: Self.hereName, room: 1, held: [])])
    try vary(bytes) { bytes in
      guard let beat = Heartbeat(bytes, .now) else { return }
      #expect(beat.longestSilence > .zero && beat.longestSilence < .seconds(3600))
      #expect(beat.work.values.allSatisfy { (0...1024).contains($0.room) })
    }
  }

  /// The former homes are stored with the queue; another machine may name any number of them.
  @Test func theFormerHomesInABeatAreLimited() throws {
    let before = (1...1000).map { "m\($0)" }
    let long = String(repeating: "m", count: 1000)
    let bytes = try #require(
      Heartbeat.bytes(
        generation: 1, [], full: [],
        heirs: ["q": Heartbeat.Heir(machine: Self.hereName, term: 1, before: before + [long])]))
    let beat = try #require(Heartbeat(bytes, .now))
    #expect(beat.heirs["q"]?.before == Array(before.suffix(Elsewhere.mostBefore)))
  }

  @Test func noNumberOfAChannelIsTrusted() throws {
    let carrier = try Carrier(machines.there)
    let until = Date().addingTimeInterval(3600)
    let content = Carrier.ChannelContent(
      version: 3, sent: Date(), writer: "al", value: 7, until: until)
    var (number, oldest) = (0, Duration.zero)
    try vary(ChannelTraffic.bytes(content, of: Self.hereName, offset: 5)) { bytes in
      for offset in [.min, 0, .max] as [Int64] {
        guard let copy = ChannelTraffic.copy(bytes, at: 1, offset: offset) else { continue }
        number += 1
        let name = "c\(number)"
        let since = copy.content.until ?? Date()
        try? carrier.store(
          copy.content, of: name, from: Self.hereName, changesTo: nil, since: since)
        let channel = machines.there.channel(name, of: PropertyListValue.self)
        let watching = try channel.watch(initial: true) { _ in }
        let age = try channel.latest?.age ?? .zero
        #expect(age >= .zero)
        oldest = max(oldest, age)
        watching.stop()
        _ = try carrier.adopt(.init(copy.content, [:]), as: name)
        try channel.put(1)
      }
    }
    #expect(number > 10 && oldest > .seconds(1e18))
    let change = Carrier.ChannelChange(
      channel: "c", operation: "o", expected: 1, value: 1, until: until)
    try vary(ChannelTraffic.bytes(change, generation: 1, number: 1, offset: 0)) { bytes in
      let list = try BinaryPropertyList.decode(bytes)
      _ = ChannelTraffic.number(list)
      guard let change = ChannelTraffic.change(list, offset: .max) else { return }
      _ = try? Carrier(machines.here).make(change, for: Self.thereName)
    }
    let answer = Carrier.ChannelAnswer(.made, version: 1, value: 1, until: until)
    try vary(ChannelTraffic.bytes(answer, offset: 0)) { bytes in
      _ = ChannelTraffic.answer(bytes, offset: .min)
    }
  }

  /// A part whose size is a multiple of the size of a piece has no empty piece at its end.
  @Test func noPieceIsBehindTheEndOfItsPart() {
    func read(_ index: Int, of size: Int) -> FlowPiece? {
      FlowPiece(.dictionary(FlowPiece(.file, index, of: size).propertyList))
    }
    let size = 3 * FlowPiece.bytes
    #expect(read(2, of: size) == FlowPiece(.file, 2, of: size))
    #expect(read(3, of: size) == nil)
    #expect(read(3, of: size + 1) == FlowPiece(.file, 3, of: size + 1))
  }

  /// A start of a bridge has the number after the recorded one, however great this is.
  @Test func noGenerationIsTrusted() throws {
    let folder = try BridgeFolder(of: machines.here.storage)
    let environment = machines.here.storage.options.environment
    for generation in [Int.max, .max - 1, 7] {
      var place = try Place.open(folder, group: "g", environment)
      try place.begin(
        after: MachineRecord(generation: generation, nonce: "x"), nonce: "y", folder)
      #expect(try Place.read(folder) == place)
      #expect(place.generation >= generation)
    }
  }
}
