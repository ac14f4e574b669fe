import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// Updates on file systems that are full, have no space for another file, or may only be read.
@Suite(.blocking, .notSanitized("about file systems and processes")) struct SmallDiskTests {
  @Test(arguments: [TestFileSystem.Kind.memory, .ext4, .fewFiles])
  fileprivate func aFullDiskDamagesNothing(_ kind: TestFileSystem.Kind) throws {
    guard let disk = try TestFileSystem.make(kind, for: "a full file system (\(kind))") else {
      return
    }
    let container = try Container.open(disk.path + "/c", options: .testing())
    let slot = try container.slot(.channels, "n")
    for _ in 0..<5 { try slot.add() }
    try disk.fill()
    var kept = 5
    let begin = Instant.now
    for durability in [Durability.process, .power, .process, .power] {
      var code: WormholeError.Code?
      while code == nil, kept < 15 {
        do {
          try slot.add(durability: durability)
        } catch let error as WormholeError {
          code = error.code
          continue
        }
        // A replaced value's file takes up space until the last descriptor of it is closed: that
        // of the sync behind a commit, or of a child before it runs its own program.
        kept += 1
        try disk.fill()
      }
      #expect(code == .full)
      #expect(try slot.number() == kept)
    }
    let before = try container.contents("channels", "n")
    let fresh = try container.slot(.channels, "fresh")
    #expect(throws: WormholeError.self) { try fresh.add() }
    let probes = [try Probe(container.path), try Probe(container.path)]
    #expect(probes.allSatisfy { $0.steps["read"] == "done" })
    // Space that such a child kept may be free by now.
    let adds = probes.flatMap { [$0.steps["add"], $0.steps["power"]] }
    #expect(adds.allSatisfy { $0 == "full" || $0 == "done" }, "\(adds)")
    let number = kept + adds.count { $0 == "done" }
    #expect(try slot.number() == number)
    #expect(Instant.now - begin < .seconds(20))
    #expect(try container.contents("channels", "n") == before)
    #expect(try container.names(in: .channels) == ["n"])
    try disk.makeRoom()
    #expect(try slot.add() == number + 1)
    #expect(try fresh.add(durability: .power) == 1)
    let again = try Container.open(container.path, options: .testing())
    #expect(try again.slot(.channels, "n").add() == number + 2)
    #expect(try container.contents("channels", "n", "lock", "1.d") == [])
    #expect(try container.contents("staging") == [])
  }

  @Test func aDiskThatMayOnlyBeReadIsRead() throws {
    guard let disk = try TestFileSystem.make(.ext4, for: "a file system that is read only") else {
      return
    }
    let path = disk.path + "/c"
    do {
      let container = try Container.open(path, options: .testing())
      try container.slot(.channels, "n").add(5)
      // The leftover of a dead process in staging cannot be swept now.
      try Descriptor.open(path: container.path("staging"), [.readOnly, .directory])
        .makeDirectory("0123456789abcdef", mode: 0o700)
    }
    try disk.remount(readOnly: true)
    let container = try Container.open(path, options: .testing())
    let slot = try container.slot(.channels, "n")
    #expect(try slot.number() == 5)
    for durability in [Durability.process, .power] {
      let error = #expect(throws: WormholeError.self) { try slot.add(durability: durability) }
      #expect(error?.code == .readOnly)
    }
    let error = #expect(throws: WormholeError.self) {
      try container.slot(.channels, "fresh").add()
    }
    #expect(error?.code == .readOnly)
    let watch = try slot.watch {}
    watch.stop()
    try disk.remount(readOnly: false)
    #expect(try slot.add() == 6)
    #expect(try container.slot(.channels, "fresh").add() == 1)
    #expect(try Container.open(path, options: .testing()).counters.swept == 1)
    #expect(try container.contents("staging") == [])
    #expect(try container.contents("channels", "n", "lock", "1.d") == [])
  }

  /// The disk was writable when the container was opened.
  @Test func aDiskThatTurnsReadOnlyKeepsItsValue() throws {
    let what = "a file system that turns read only"
    guard let disk = try TestFileSystem.make(.ext4, for: what) else { return }
    let container = try Container.open(disk.path + "/c", options: .testing())
    let slot = try container.slot(.channels, "n")
    // Not from here: what is open for writing keeps the kernel from changing its mind.
    #expect(try Probe(container.path).steps["add"] == "done")
    #expect(try slot.number() == 2)
    for _ in 0..<3 {
      try disk.remount(readOnly: true)
      let error = #expect(throws: WormholeError.self) { try slot.add() }
      #expect(error?.code == .readOnly)
      #expect(try slot.number() == 2)
      try disk.remount(readOnly: false)
      #expect(try container.contents("staging") == [])
    }
    #expect(try slot.add() == 3)
  }
}
