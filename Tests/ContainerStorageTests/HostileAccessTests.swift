import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A member of a group who puts files that no program has made among the accesses.
@Suite(.blocking, .notSanitized("processes of users who cannot write its log"))
struct HostileAccessTests {
  private static let hour: UInt64 = 3_600_000_000_000

  private static func name(_ stamp: UInt64, _ number: Int) -> String {
    let digits = String(stamp, radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count)
      + "\(digits),\(GroupScene.process),\(number)"
  }

  private func stamp(_ name: String) -> UInt64 { UInt64(name.prefix(16), radix: 16) ?? .max }

  private var now: UInt64 { UInt64(Clocks.sinceBoot) }

  /// An object that is not an access, under the name of an access.
  enum Plant: CaseIterable, Sendable { case directory, link, fifo, file }

  private func put(
    _ plant: Plant, _ place: String, _ name: String, _ scene: GroupScene
  ) throws {
    let folder = "\(scene.home)/\(place)"
    switch plant {
    case .directory: try scene.must(.bob, .plantDirectory(folder, name))
    case .link: try scene.must(.bob, .plantLink(folder, name, to: "../../../container.plist"))
    case .fifo:
      try Descriptor.open(path: folder, [.readOnly, .directory]).makeFIFO(name, mode: 0o660)
      try scene.give("\(folder)/\(name)", to: .bob, mode: 0o660)
    case .file: try scene.plant(.bob, GroupScene.entry([scene.file]), in: place, as: name)
    }
  }

  @Test(arguments: Plant.allCases, AccessPlace.allCases)
  func whatIsPlantedAmongAccessesStopsNobody(_ plant: Plant, _ place: AccessPlace) throws {
    guard let scene = try GroupScene.make(for: "what is planted among accesses") else { return }
    let stamps = [UInt64.max, now + 2 * Self.hour, now + Self.hour / 2, 1]
    let names = stamps.indices.map { Self.name(stamps[$0], $0 + 1) }
    // What dead processes have left is removed with the first access.
    let coordinator = scene.coordinator()
    try coordinator.write(scene.file) { _ in }
    try scene.must(.alice, .coordinate(.write, scene.file, .nothing))
    for name in names { try put(plant, place.name, name, scene) }
    #expect(throws: Never.self) {
      try coordinator.write(scene.file) { (_: String) throws in
        let own = try scene.accesses("running").filter { !$0.contains(GroupScene.process) }
        #expect(own.count == 1 && own.allSatisfy { stamp($0) <= now + Self.hour })
      }
    }
    for user in [SharedPlace.User.alice, .bob] {
      let outcome = try scene.start(user, .coordinate(.write, scene.file, .nothing)).outcome()
      #expect(outcome.output == "inside\ndone\n", "\(outcome.errors)")
    }
    let planted = names.map { "\(place.name)/\($0)" }
    let found = try container(scene, planted)
    // The plain files were taken for leftovers of dead processes.
    #expect(found.count == (plant == .file ? 0 : names.count))
    #expect(
      found.allSatisfy {
        $0.isRepairable && $0.what == "not a plain file: every program ignores the entry"
      })
    #expect(Set(try scene.container.repair()).isSuperset(of: found))
    #expect(try container(scene, planted).count == 0)
    #expect(try scene.accesses(place.name) == [])
    let aside = try scene.names(scene.container.path + "/damaged")
    #expect(aside.filter { $0.hasSuffix(".reason") }.count == found.count)
    try scene.must(.alice, .coordinate(.write, scene.file, .nothing))
  }

  private func container(_ scene: GroupScene, _ paths: [String]) throws -> [Diagnosis] {
    try scene.container.inspect().filter { finding in
      paths.contains { finding.subject.hasSuffix("system/coordination/\($0)") }
    }
  }

  /// An earlier program may have chosen the stamp, based on entries from an earlier run of the
  /// machine.
  ///
  /// The access therefore blocks other accesses, and its stamp raises no other stamp.
  @Test func anAccessWhoseStampIsTooFarAheadIsNamedAndRaisesNobodys() throws {
    guard let scene = try GroupScene.make(for: "stamps") else { return }
    let bob = try scene.start(.bob, .coordinate(.write, scene.file, .linger))
    try eventually("he is inside") { try bob.output == "inside\n" }
    let old = try #require(try scene.accesses("running").first)
    let name = "ffffffffffffffff" + old.dropFirst(16)
    try scene.must(.bob, .rename("\(scene.home)/running", old, to: name))
    let alice = try scene.start(.alice, .coordinate(.write, scene.file, .nothing))
    try eventually("she waits") { try scene.accesses("waiting").count == 1 }
    #expect(try stamp(scene.accesses("waiting")[0]) <= now + Self.hour)
    let other = try scene.start(.alice, .coordinate(.write, scene.folder + "/other", .nothing))
    #expect(try other.outcome().output == "inside\ndone\n")
    let found = try container(scene, ["running/\(name)"])
    #expect(found.map(\.what) == ["its stamp is more than an hour ahead of the clock"])
    #expect(try scene.container.repair() == found)
    #expect(try alice.outcome().output == "inside\ndone\n")
    let aside = try scene.names(scene.container.path + "/damaged")
    #expect(aside.contains { $0.hasSuffix(".\(name).plist") })
    #expect(aside.contains { $0.hasSuffix(".\(name).reason") })
  }

  /// New stamps are above the stamps of other accesses, but not beyond the bound.
  @Test func stampsThatAreNearlyTooFarAheadDoNotAddUp() throws {
    guard let scene = try GroupScene.make(for: "stamps") else { return }
    // The last holder of the lock does not list; these two coordinators take turns.
    let coordinators = [scene.coordinator(), scene.coordinator()]
    for coordinator in coordinators { try coordinator.write(scene.file) { _ in } }
    let entry = try GroupScene.entry([scene.folder + "/none"])
    for round in 1...6 {
      let name = Self.name(now + Self.hour - 1_000_000, round)
      try scene.plant(.bob, entry, in: "waiting", as: name)
      try coordinators[(round + 1) % 2].write(scene.file) { (_: String) throws in
        let own = try scene.accesses("running").map(stamp)
        #expect(own.count == 1 && own.allSatisfy { $0 > stamp(name) && $0 <= now + Self.hour })
      }
    }
  }

  /// Links and directories replace the directories of the accesses, under a process that has the
  /// original directories open and has no other access to list.
  @Test(arguments: AccessPlace.allCases, [true, false])
  func whatTakesTheNameOfADirectoryIsNotFollowed(_ place: AccessPlace, _ isLink: Bool) throws {
    guard let scene = try GroupScene.make(for: "directories of accesses") else { return }
    let coordinator = scene.coordinator()
    let notADirectory = Errno.notADirectory.rawValue
    for _ in 0..<2 { try coordinator.write(scene.file) { _ in } }
    try scene.makePrivate(scene.folder + "/private")
    let before = try scene.tree(scene.folder + "/private")
    try scene.must(.bob, .rename(scene.home, place.name, to: "away"))
    if isLink {
      try scene.must(
        .bob, .plantLink(scene.home, place.name, to: scene.folder + "/private"))
    } else {
      try scene.must(.bob, .plantDirectory(scene.home, place.name))
      try scene.give("\(scene.home)/\(place.name)", to: .bob, mode: 0o2770)
    }
    func look() throws {
      // In the directories that other processes list.
      if place != .running || !isLink { #expect(try scene.accesses("running").count == 1) }
      #expect(try scene.tree(scene.folder + "/private") == before)
      #expect(try scene.names(scene.home + "/away") == [])
    }
    let write = try? failure {
      try coordinator.write(scene.file) { (_: String) throws in try look() }
    }
    // Only a process that was not the last one lists `overtaken/`; it fails at the link.
    if isLink, place == .overtaken {
      #expect(write?.errno ?? notADirectory == notADirectory, "\(write as Any)")
    } else {
      #expect((write != nil) == (isLink && place == .running), "\(write as Any)")
    }
    let replace = try? failure {
      try coordinator.replace(scene.file) { (new: String, _: String) throws in
        try Descriptor.open(path: new, [.writeOnly, .create], mode: 0o660).write("1")
        try look()
      }
    }
    if isLink, place == .overtaken {
      #expect(replace?.errno ?? notADirectory == notADirectory, "\(replace as Any)")
    } else {
      #expect((replace != nil) == isLink, "\(replace as Any)")
    }
    #expect(try scene.tree(scene.folder + "/private") == before)
    #expect(try scene.names(scene.home + "/away") == [])
    let found = try scene.container.inspect().filter {
      $0.subject.hasSuffix("system/coordination/\(place.name)")
    }
    #expect(found.map(\.severity) == (isLink ? [.problem] : []))
    guard isLink else { return }
    // Alice was not the last one, and lists all of them.
    let other = try scene.start(.alice, .coordinate(.write, scene.file, .nothing)).outcome()
    #expect(other.status != .exited(0) && other.errors.contains("not a directory"), "\(other)")
    #expect(try scene.tree(scene.folder + "/private") == before)
    try Descriptor.open(path: scene.home, [.readOnly, .directory]).unlink(place.name)
    try scene.must(.alice, .coordinate(.write, scene.file, .nothing))
    try coordinator.write(scene.file) { _ in }
  }
}
