import Synchronization
import TestSupport
import TestTraits
import Testing
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeContainerStorage

/// P9 and the rules of the directory: whatever a program puts there, no process is brought down or
/// held up, nothing outside is touched, nothing foreign is removed, and the error is clear.
@Suite(.blocking) struct HostileDirectoryTests {
  private let folder: TemporaryDirectory
  private let container: Container

  init() throws {
    (folder, container) = try Container.forTest()
    // More than once, so that a kept value exists as well.
    let slot = try container.slot(.channels, "n")
    for _ in 0..<3 { try slot.add(durability: .power) }
    try folder.descriptor.makeDirectory("outside", mode: 0o700)
    let outside = try folder.descriptor.open("outside", [.readOnly, .directory])
    let target = try outside.open("target", [.writeOnly, .create], mode: 0o600)
    try target.write(String(repeating: "do not touch ", count: 20))
  }

  /// Another program may cut the file off between the look at its size and the read.
  @Test(arguments: [100, 2000]) func aFileBelowItsSizeIsReadToItsEnd(_ size: Int) throws {
    try folder.write("cut", to: "file")
    let file = try folder.descriptor.open("file", [.readOnly])
    #expect(try file.readAll(size: size) == Array("cut".utf8))
  }

  /// The kinds of objects that can replace the expected object.
  enum Plant: String, CaseIterable, Sendable {
    case linkToFile, linkToDirectory, linkToNothing, fifo, socket, device, directory, hardLink
  }

  /// A path that a plant can replace, and the steps, of four, that fail with the plant.
  struct Place: Sendable, CustomTestStringConvertible {
    let path: [String]
    let fails: Set<String>

    init(_ path: String, fails: Set<String>) {
      self.path = path.split(separator: "/").map(String.init)
      self.fails = fails
    }

    var testDescription: String { path.joined(separator: "/") }

    static let all = [
      Place("container.plist", fails: ["open"]),
      Place("staging", fails: ["open"]),
      Place("channels", fails: ["names", "read", "add", "power"]),
      Place("channels/n", fails: ["read", "add", "power"]),
      Place("channels/n/value.plist", fails: ["read", "add", "power"]),
      Place("channels/n/kept.plist", fails: []),
      Place("channels/n/lock", fails: ["add", "power"]),
      Place("channels/n/lock/1", fails: ["add", "power"]),
      Place("channels/n/lock/2", fails: ["add", "power"]),
      Place("channels/n/lock/1.d", fails: ["add", "power"]),
      Place("channels/n/lock/1.d/next", fails: []),
      Place("staging/0123456789abcdef", fails: []),
      Place("members", fails: []),
    ]
  }

  @Test(.notSanitized("the probes run in processes of their own"), arguments: Place.all)
  fileprivate func whatIsPlanted(_ place: Place) throws {
    for plant in Plant.allCases {
      // A directory is no plant where a directory belongs; and a plain file of ours is read.
      let isDirectory = ["staging", "channels", "n", "lock", "1.d", "members"]
        .contains(place.path.last!)
      if plant == .directory, isDirectory { continue }
      try check(plant, at: place)
    }
  }

  private func check(_ plant: Plant, at place: Place) throws {
    let what = "a \(plant.rawValue) as \(place.testDescription)"
    let above = try Descriptor.open(
      path: ([container.path] + place.path.dropLast()).joined(separator: "/"),
      [.readOnly, .directory])
    let name = place.path.last!
    let hidden = try folder.make("hidden \(plant.rawValue)")
    let wasThere = (try? above.status(of: name)) != nil
    if wasThere { try above.rename(name, to: hidden, name) }
    guard try put(plant, name, in: above, what) else {
      if wasThere { try hidden.rename(name, to: above, name) }
      return
    }
    let kind = try above.status(of: name).kind
    let before = try outside()

    let probe = try Probe(container.path)
    #expect(probe.status == .exited(0), "\(what): \(probe.text)")
    let failed = Set(probe.steps.filter { $0.value != "done" }.keys)
    // The content of a hard link is a plain file's: damaged where a value should be, and healed.
    if plant != .hardLink || !name.hasSuffix(".plist") {
      #expect(failed == place.fails, "\(what): \(probe.text)")
      for step in failed {
        #expect(probe.steps[step] == "refused", "\(what): \(probe.text)")
      }
    }
    #expect(try outside() == before, "\(what): touched what lies outside")
    // An object that stages a change is emptied by the next change.
    if name != "next", plant != .hardLink, name != "0123456789abcdef" || plant != .directory {
      #expect(try above.status(of: name).kind == kind, "\(what): is gone")
    }

    if (try? above.status(of: name)) != nil {
      if try above.status(of: name).kind == .directory {
        try removeAll(name, in: above)
      } else {
        try above.unlink(name)
      }
    }
    if wasThere { try hidden.rename(name, to: above, name) }
    let after = try Probe(container.path)
    #expect(after.steps.values.allSatisfy { $0 == "done" }, "after \(what): \(after.text)")
  }

  /// Returns false where the plant cannot be made.
  private func put(
    _ plant: Plant, _ name: String, in above: borrowing Descriptor, _ what: String
  ) throws -> Bool {
    let outside = folder.path + "/outside"
    switch plant {
    case .linkToFile: try above.makeSymbolicLink(name, to: outside + "/target")
    case .linkToDirectory: try above.makeSymbolicLink(name, to: outside)
    case .linkToNothing: try above.makeSymbolicLink(name, to: outside + "/nothing")
    case .fifo: try above.makeFIFO(name, mode: 0o600)
    case .socket: try above.makeSocket(name, mode: 0o600)
    case .directory:
      try above.makeDirectory(name, mode: 0o700)
      _ = try above.open(name, [.readOnly, .directory])
        .open("child", [.writeOnly, .create], mode: 0o600)
    case .hardLink:
      let target = try Descriptor.open(path: outside, [.readOnly, .directory])
      try target.link("target", to: above, name)
    case .device:
      let path = try Self.path(of: above) + "/" + name
      guard
        try Processes.effectiveUser == 0
          && run("mknod", [path, "c", "1", "3"]).status == .exited(0)
      else {
        skip(what, because: "no device can be made")
        return false
      }
    }
    return true
  }

  private static func path(of directory: borrowing Descriptor) throws -> String {
    let own = try Descriptor.open(path: "/proc/\(Processes.current)/fd", [.readOnly, .directory])
    return String(
      decoding: try own.readSymbolicLink("\(directory.rawValue)"), as: UTF8.self)
  }

  private func removeAll(_ name: String, in above: borrowing Descriptor) throws {
    try above.open(name, [.readOnly, .directory]).removeContents()
    try above.removeDirectory(name)
  }

  /// All names and contents outside of the container.
  private func outside() throws -> [String] {
    let directory = try folder.descriptor.open("outside", [.readOnly, .directory])
    var found: [String] = []
    for name in try directory.names().sorted() {
      let status = try directory.status(of: name)
      let text = String(decoding: try directory.open(name, [.readOnly]).contents(), as: UTF8.self)
      found.append("\(name) \(status.mode) \(status.modified) \(status.inode) \(text)")
    }
    return found
  }

  // MARK: The owner, and the users who may write

  @Test func aContainerThatOthersMayWriteToIsRefused() throws {
    for (mode, sharing, isRefused) in [
      (0o777, Sharing.owner, true), (0o770, .owner, true), (0o702, .owner, true),
      (0o755, .owner, false), (0o777, .group, true), (0o700, .owner, false),
    ] as [(FileMode, Sharing, Bool)] {
      try container.root.descriptor.setMode(mode)
      var options = ContainerOptions.testing()
      options.sharing = sharing
      let error = try? failure { _ = try Container.open(container.path, options: options) }
      #expect(error?.code == (isRefused ? .refused : nil), "\(mode) \(sharing)")
      // No repair is advised if the caller takes the container for the other kind.
      let mends = isRefused && sharing == .owner
      if mends { #expect(error?.hint?.hasPrefix("chmod ") == true) }
    }
  }

  @Test func aContainerBehindALinkIsRefused() throws {
    try folder.descriptor.makeSymbolicLink("link", to: "c")
    let error = try failure { _ = try Container.open(folder.path + "/link", options: .testing()) }
    #expect(error.code == .refused)
    #expect(error.reason == "the path is a symbolic link, or not a directory")
    let nowhere = folder.path + "/nothing" + "/c"
    let slash = try failure { _ = try Container.open(nowhere, options: .testing()) }
    #expect(slash.code == .notFound)
  }

  @Test func whatBelongsToSomeoneElseIsRefused() throws {
    guard Processes.effectiveUser == 0 else {
      skip("files of other users", because: "only root can make them")
      return
    }
    let value = container.path("channels", "n", "value.plist")
    _ = try run("chown", ["12345", value])
    var probe = try Probe(container.path)
    #expect(probe.steps["read"] == "refused" && probe.steps["add"] == "refused", "\(probe.text)")
    #expect(probe.text.contains("its value.plist belongs to user 12345"))
    _ = try run("chown", ["0", value])
    _ = try run("chown", ["12345", container.path])
    probe = try Probe(container.path)
    #expect(probe.steps == ["open": "refused"])
    #expect(probe.text.contains("the directory belongs to user 12345, not to user 0"))
  }

  // MARK: Names

  @Test func foreignNamesAreLeftAlone() throws {
    let long = String(repeating: "x", count: 255)
    let invalid: [UInt8] = [0xff, 0xfe, 0x41]
    for place in [[], ["channels"], ["staging"], ["channels", "n"], ["channels", "n", "lock"]] {
      let directory = try Descriptor.open(
        path: ([container.path] + place).joined(separator: "/"), [.readOnly, .directory])
      _ = try directory.open(long, [.writeOnly, .create], mode: 0o600)
      try (invalid + [0]).withUnsafeBufferPointer { bytes in
        try bytes.withMemoryRebound(to: CChar.self) { name in
          _ = try directory.open(name.baseAddress!, [.writeOnly, .create], mode: 0o600)
        }
      }
      try directory.makeDirectory("%zz", mode: 0o700)
      _ = try directory.open("README", [.writeOnly, .create], mode: 0o600)
    }
    let probe = try Probe(container.path)
    #expect(probe.steps.values.allSatisfy { $0 == "done" }, "\(probe.text)")
    #expect(try container.names(in: .channels) == ["n"])
    for place in ["channels", "staging"] {
      let names = try container.contents(place)
      #expect(names.contains(long) && names.contains("%zz") && names.contains("README"))
      var count = 0
      try Descriptor.open(path: container.path(place), [.readOnly, .directory])
        .forEachName { _ throws(Errno) in
          count += 1
          return true
        }
      #expect(count == names.count + 1)
    }
  }

  /// The huge number is not a generation of ours, and no process counts up to it.
  @Test(arguments: ["999999999", "20261122.d", "99999", "99999.d"])
  func aHugeNumberInTheLockHoldsNobodyUp(_ name: String) throws {
    let locks = try Descriptor.open(
      path: container.path("channels", "n", "lock"), [.readOnly, .directory])
    if name.hasSuffix(".d") {
      try locks.makeDirectory(name, mode: 0o700)
    } else {
      _ = try locks.open(name, [.writeOnly, .create], mode: 0o600)
    }
    #expect(try run(.add(container.path, "n", times: 2)).output == "4\n5\n")
    #expect(try container.slot(.channels, "n").add() == 6)
  }

  @Test func namesAsLongAsTheyComeServe() throws {
    let longest = String(repeating: "n", count: EscapedName.limit)
    let odd = String(repeating: "/", count: EscapedName.limit / 3)
    for name in [longest, odd, "..", ".", "-rf", "\u{0}"] {
      #expect(try container.slot(.channels, name).add(durability: .power) == 1)
    }
    let names = try container.names(in: .channels)
    #expect(Set(names) == [longest, odd, "..", ".", "-rf", "\u{0}", "n"])
    let error = try failure { _ = try container.slot(.channels, longest + "n") }
    #expect(error.code == .invalidName)
    #expect(try failure { _ = try container.slot(.channels, "") }.code == .invalidName)
    // What is stored beside a name of the user's takes nothing of its length.
    for prefix in ["defaults.", "lock.", "wake."] {
      for name in [prefix + longest, prefix + odd] {
        #expect(try container.slot(.system, name).add() == 1)
        #expect(try container.names(in: .system).contains(name))
        let error = try failure { _ = try container.slot(.system, name + "n") }
        #expect(error.reason == "the escaped name takes 181 bytes, and the limit is 180")
      }
    }
    #expect(try container.inspect().filter { $0.subject.hasPrefix("system/") } == [])
  }

  // MARK: container.plist

  @Test func aLaterFormatIsRefused() throws {
    struct Later: Encodable {
      var format = 2
      var id = ["of another", "type"]
    }
    try replaceMarker(try BinaryEncoder().encode(Later()))
    let error = try failure { _ = try Container.open(container.path, options: .testing()) }
    #expect(error.code == .laterFormat)
    #expect(error.reason == "the container has format 2, and the program supports format 1")
  }

  @Test func aDamagedMarkerIsAnErrorAndStays() throws {
    let whole = try Descriptor.open(path: container.path("container.plist"), [.readOnly]).contents()
    var flipped = whole
    flipped[whole.count / 2] ^= 0x20
    let damaged: [[UInt8]] = [
      [], [0], Array("bplist00".utf8), Array("bplist00junk".utf8), Array(whole.dropLast()),
      Array(whole.prefix(whole.count / 2)), flipped, Array(repeating: 0, count: 4096),
      try BinaryEncoder().encode("a text"), try BinaryEncoder().encode(["format": "one"]),
    ]
    for bytes in damaged {
      try replaceMarker(bytes)
      let error = try failure { _ = try Container.open(container.path, options: .testing()) }
      #expect(error.code == .damaged, "\(bytes.prefix(20)): \(error)")
      let left = try Descriptor.open(path: container.path("container.plist"), [.readOnly])
      #expect(try left.contents() == bytes)
    }
    try replaceMarker(Array(repeating: 0, count: 1 << 17))
    let error = try failure { _ = try Container.open(container.path, options: .testing()) }
    #expect(error.code == .refused)
    try replaceMarker(whole)
    #expect(try Probe(container.path).steps["add"] == "done")
  }

  private func replaceMarker(_ bytes: [UInt8]) throws {
    let file = try container.root.descriptor.open(
      "container.plist", [.writeOnly, .truncate], mode: 0o600)
    try file.writeFully(bytes)
  }

  // MARK: Manual changes at the same time

  /// Files that a running process has open may be removed a moment later.
  @Test(arguments: ["1.d", "lock", "n"])
  func whatIsRemovedByHandIsMadeAnew(_ name: String) throws {
    let slot = try container.slot(.channels, "n")
    var number = try slot.add()
    let paths = [
      "n": container.path("channels", "n"), "lock": container.path("channels", "n", "lock"),
      "1.d": container.path("channels", "n", "lock", "1.d"),
    ]
    for _ in 0..<3 {
      #expect(try run("rm", ["-r", paths[name]!]).status == .exited(0))
      if name == "n" { number = 0 }
      #expect(try slot.add() == number + 1)
      number = try slot.add()
      // The same when one call changes several slots.
      #expect(try run("rm", ["-r", paths[name]!]).status == .exited(0))
      if name == "n" { number = 0 }
      try container.change([slot], "update") { contents in
        number = try Slot.number(in: contents[0]) + 1
        return [.put(try BinaryEncoder().encode(number))]
      }
      #expect(try slot.number() == number)
    }
    #expect(try Probe(container.path).steps["add"] == "done")
  }

  /// The value is swapped with links, FIFOs and directories while other threads read and change it.
  @Test func namesThatAreSwappedMeanwhile() throws {
    let seed = TestRun.seed
    let isOver = Atomic<Bool>(false)
    let swaps = Atomic<Int>(0)
    let before = try outside()
    let pool = try folder.make("pool")
    for plant in [Plant.linkToFile, .linkToDirectory, .fifo, .socket, .directory] {
      _ = try put(plant, plant.rawValue, in: pool, "swapping")
    }
    let (root, poolPath) = (container.path("channels", "n"), folder.path + "/pool")
    let swapper = try Thread("swapper") {
      guard let pool = try? Descriptor.open(path: poolPath, [.readOnly, .directory]),
        let slot = try? Descriptor.open(path: root, [.readOnly, .directory])
      else { return }
      var random = SeededRandom(seed: seed)
      while !isOver.load(ordering: .relaxed) {
        let plant = [Plant.linkToFile, .linkToDirectory, .fifo, .socket, .directory]
          .randomElement(using: &random)!
        let isSwapped = Errno.isNone { () throws(Errno) in
          try pool.rename(plant.rawValue, to: slot, "value.plist", .exchanging)
        }
        guard isSwapped else { continue }
        swaps.add(1, ordering: .relaxed)
        for _ in 0..<Int.random(in: 0...3, using: &random) { Processes.yield() }
        _ = Errno.isNone { () throws(Errno) in
          try pool.rename(plant.rawValue, to: slot, "value.plist", .exchanging)
        }
        // Or on a busy machine the workers would hardly ever run while the value is in its place.
        for _ in 0..<Int.random(in: 0...3, using: &random) { Processes.yield() }
      }
    }
    let results = Monitor<[String: Int]>([:])
    let workers = try (0..<2).map { number in
      try Thread("worker") { [container] in
        let (end, limit) = (Instant.now + .seconds(1), Instant.now + patience)
        // A busy disk may hold up the swapper for longer than a second, with a plant in place.
        func isHeldUp() -> Bool {
          results.withLock { $0["done"] == nil } || swaps.load(ordering: .relaxed) == 0
        }
        while Instant.now < end || (isHeldUp() && Instant.now < limit) {
          let before = Instant.now
          let result: String
          do {
            let slot = try container.slot(.channels, "n")
            if number == 0 { _ = try slot.read() } else { try slot.add() }
            result = "done"
          } catch {
            result = (error as? WormholeError)?.code.rawValue ?? "\(error)"
          }
          let isLate = Instant.now - before > .seconds(20)
          results.withLock { $0[isLate ? "late" : result, default: 0] += 1 }
        }
      }
    }
    for worker in workers { worker.join() }
    isOver.store(true, ordering: .relaxed)
    swapper.join()
    let found = results.withLock { $0 }
    #expect(
      Set(found.keys).isSubset(of: ["done", "refused", "superseded"]), "seed \(seed): \(found)")
    #expect(found["done"] ?? 0 > 0 && swaps.load(ordering: .relaxed) > 0)
    #expect(try outside() == before, "seed \(seed): touched what lies outside")
  }
}

extension Errno {
  /// Whether the calls went well.
  fileprivate static func isNone(_ body: () throws(Errno) -> Void) -> Bool {
    do throws(Errno) {
      try body()
      return true
    } catch {
      return false
    }
  }
}
