import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A member of a group who makes programs take other users' directories for hidden directories.
@Suite(.blocking, .notSanitized("processes of users who cannot write its log"))
struct HostileHiddenTests {
  private static let places = ["waiting", "running", "overtaken", "passed"]

  /// Each user and root access the file, as later programs do.
  ///
  /// A repair follows.
  private func haveAllLook(_ scene: GroupScene) throws {
    try scene.must(.alice, .coordinate(.write, scene.file, .nothing))
    try scene.must(.bob, .coordinate(.write, scene.file, .nothing))
    try scene.coordinator().write(scene.file) { _ in }
    _ = try scene.container.repair()
    try scene.must(.alice, .coordinate(.write, scene.file, .nothing))
  }

  @Test(arguments: places)
  func aMemberHasNobodysPrivateDirectoryRemoved(_ folder: String) throws {
    guard let scene = try GroupScene.make(for: "private directories") else { return }
    try scene.makePrivate(scene.folder + "/private")
    let before = try scene.tree(scene.folder + "/private")
    let name = UserPath(scene.hidden).name
    try scene.must(.bob, .rename(scene.folder, "private", to: name))
    let entry = try GroupScene.entry([scene.file], hidden: [scene.hidden])
    try scene.plant(.bob, entry, in: folder)
    try haveAllLook(scene)
    #expect(try scene.tree(scene.hidden) == before)
    // The inspection names the directory to a person, who may look into it.
    let findings = try scene.findings(about: scene.hidden)
    #expect(findings.map(\.severity) == [.problem])
    #expect(findings.allSatisfy { !$0.isRepairable })
    #expect(try scene.accesses("passed") == [GroupScene.name])
    try scene.must(.bob, .rename(scene.folder, name, to: "private"))
    try scene.must(.alice, .coordinate(.write, scene.file, .nothing))
    #expect(try scene.accesses("passed") == [])
    #expect(try scene.tree(scene.folder + "/private") == before)
  }

  /// The fault of a directory that Alice's access has not made, or only allegedly made.
  enum Forgery: CaseIterable, Sendable {
    case anothersEntry, noMarker, anotherIdentity, noIdentity, anotherContainer, anothersMarker
    case markerIsLink, writable, anothersDirectory, link, behindLink, notBeside, otherName
  }

  private static let files = ["\(GroupScene.identity)/new", "\(GroupScene.identity).0/old"]

  /// Makes the forged directory; returns its path, and the path that the entry names.
  private func make(
    _ forgery: Forgery?, _ scene: GroupScene
  ) throws -> (real: String, named: String) {
    var marker = scene.marker
    var (real, named) = (scene.hidden, scene.hidden)
    switch forgery {
    case .noMarker: marker = "marker"
    case .anotherIdentity: marker = "\(scene.container.id).0000000000000000"
    case .anotherContainer: marker = "0.\(GroupScene.identity)"
    case .link: real = scene.folder + "/private"
    case .behindLink, .notBeside:
      let above = scene.folder + "/other"
      try Descriptor.makeDirectory(path: above, mode: 0o700)
      try scene.give(above, to: .alice, mode: 0o2770)
      real = "\(above)/\(UserPath(scene.hidden).name)"
      named = real
      if forgery == .behindLink {
        try scene.must(.bob, .plantLink(scene.folder, "link", to: "other"))
        named = "\(scene.folder)/link/\(UserPath(scene.hidden).name)"
      }
    case .otherName:
      real = scene.folder + "/private"
      named = real
    default: break
    }
    try scene.makePrivate(real, Self.files + (forgery == .markerIsLink ? [] : [marker]))
    switch forgery {
    case .anothersMarker: try scene.give("\(real)/\(marker)", to: .bob, mode: 0o600)
    case .markerIsLink:
      try Descriptor.open(path: real, [.readOnly, .directory])
        .makeSymbolicLink(marker, to: "diary")
    case .writable: try scene.give(real, to: .alice, mode: 0o2770)
    case .anothersDirectory: try scene.give(real, to: .bob, mode: 0o700)
    case .link:
      try scene.must(.bob, .plantLink(scene.folder, UserPath(scene.hidden).name, to: "private"))
    default: break
    }
    return (real, named)
  }

  @Test(arguments: Forgery.allCases, ["waiting", "passed"])
  func nothingIsRemovedWithoutProof(_ forgery: Forgery, _ folder: String) throws {
    guard let scene = try GroupScene.make(for: "hidden directories") else { return }
    let (real, named) = try make(forgery, scene)
    let before = try scene.tree(real)
    let paths = [forgery == .behindLink ? "\(scene.folder)/link/n" : scene.file]
    let identity = forgery == .noIdentity ? nil : GroupScene.identity
    let entry = try GroupScene.entry(paths, hidden: [named], identity: identity)
    // A member may keep an entry of another user by a link, and put it back.
    try scene.plant(forgery == .anothersEntry ? .bob : .alice, entry, in: folder)
    try haveAllLook(scene)
    #expect(try scene.tree(real) == before)
    let isMisplaced = [.notBeside, .otherName].contains(forgery)
    #expect(try scene.accesses("waiting") == [])
    // A directory that no access can have made is not even named.
    #expect(try scene.accesses("passed") == (isMisplaced ? [] : [GroupScene.name]))
    let findings = try scene.findings(about: "'\(named)'")
    #expect(findings.count == (isMisplaced ? 0 : 1))
    #expect(findings.allSatisfy { $0.severity == .problem && !$0.isRepairable })
  }

  @Test(arguments: places) func whatIsProvenIsRemoved(_ folder: String) throws {
    guard let scene = try GroupScene.make(for: "hidden directories") else { return }
    let (real, named) = try make(nil, scene)
    let entry = try GroupScene.entry([scene.file], hidden: [named])
    try scene.plant(.alice, entry, in: folder)
    // Bob may not enter the directory, and leaves it to Alice.
    try scene.must(.bob, .coordinate(.write, scene.file, .nothing))
    #expect(try scene.accesses("passed") == [GroupScene.name])
    #expect(try scene.names(real).contains(GroupScene.identity))
    try scene.must(.alice, .coordinate(.write, scene.file, .nothing))
    // Only objects that the access has made are removed: the rest belongs to another program.
    #expect(Set(try scene.names(real)) == ["diary", "letters", scene.marker])
    #expect(try scene.findings(about: named).count == 1)
    for name in ["diary", "letters"] { _ = try run("rm", ["-r", "\(real)/\(name)"]) }
    try scene.must(.alice, .coordinate(.write, scene.file, .nothing))
    #expect(try scene.accesses("passed") == [])
    #expect(try !scene.names(scene.folder).contains(UserPath(real).name))
  }

  /// An action of another program on the hidden directory of a stopped process.
  enum Deed: CaseIterable, Sendable {
    case removeMarker, putAnotherThere, giveAway, putLinkThere, openUp
  }

  @Test(arguments: Deed.allCases)
  func nobodyGoesPastOneThatCannotBeFenced(_ deed: Deed) throws {
    guard let scene = try GroupScene.make(for: "hidden directories") else { return }
    let (peer, hidden) = try scene.stoppedReplacer()
    let name = UserPath(hidden).name
    switch deed {
    case .removeMarker:
      let marker = try scene.names(hidden).first { $0.hasPrefix(scene.container.id) }
      try Descriptor.open(path: hidden, [.readOnly, .directory]).unlink(try #require(marker))
    case .putAnotherThere, .putLinkThere:
      try scene.must(.bob, .rename(scene.folder, name, to: "away"))
      try scene.makePrivate(scene.folder + "/private")
      if deed == .putAnotherThere {
        try scene.must(.bob, .rename(scene.folder, "private", to: name))
      } else {
        try scene.must(.bob, .plantLink(scene.folder, name, to: "away"))
      }
    case .giveAway: try scene.give(hidden, to: .bob, mode: 0o2700)
    case .openUp: try scene.give(hidden, to: .alice, mode: 0o2770)
    }
    let before = try scene.tree(scene.folder).filter { !$0.hasPrefix(".wormhole/") }
    let error = #expect(throws: WormholeError.self) {
      try scene.coordinator().write(scene.file, takeOverAfter: .milliseconds(50)) { _ in }
    }
    #expect(error?.code == .refused, "\(error as Any)")
    #expect(
      error?.reason.contains("failed to fence the directory '\(hidden)' of 'TestPeer'") == true)
    #expect(try scene.accesses("running").count == 1)
    #expect(try scene.accesses("overtaken") == [])
    #expect(try scene.tree(scene.folder).filter { !$0.hasPrefix(".wormhole/") } == before)
    // A dead access blocks no other access, and the directory is left.
    try peer.child.send(.kill)
    _ = try peer.outcome()
    try haveAllLook(scene)
    #expect(try scene.tree(scene.folder).filter { !$0.hasPrefix(".wormhole/") } == before)
    #expect(try scene.findings(about: "'\(hidden)'").count == 1)
  }

  /// In each of a hundred tries its owner has made another file.
  @Test func aDirectoryThatNeverBecomesEmptyIsAnError() throws {
    guard let scene = try GroupScene.make(for: "hidden directories") else { return }
    let (peer, hidden) = try scene.stoppedReplacer()
    let rule = FaultRule(.rmdir, path: ".wormhole-", persistent: true, .fail(.directoryNotEmpty))
    var error: WormholeError?
    let calls = FaultPoints.with([rule]) {
      error = #expect(throws: WormholeError.self) {
        try scene.coordinator().write(scene.file, takeOverAfter: .milliseconds(50)) { _ in }
      }
    }
    #expect(error?.code == .system, "\(error as Any)")
    #expect(error?.reason.hasSuffix("the directory does not become empty") == true)
    #expect(error?.reason.contains("'\(hidden)'") == true)
    #expect(calls.filter { $0.hasPrefix("rmdir \(hidden)/") }.count == 100)
    // Or the deadline ends the access, after any number of tries.
    let slow = FaultRule(
      .open, path: ".wormhole-", persistent: true, .delay(milliseconds: 50))
    let time = try Bystander.time {
      _ = FaultPoints.with([rule, slow]) {
        error = #expect(throws: WormholeError.self) {
          try scene.coordinator().write(
            scene.file, within: .milliseconds(500), takeOverAfter: .milliseconds(50)
          ) { _ in }
        }
      }
    }
    #expect(error?.code == .timedOut, "\(error as Any)")
    #expect(time < .seconds(3))
    try scene.coordinator().write(scene.file, takeOverAfter: .milliseconds(50)) { _ in }
    #expect(try !scene.names(scene.folder).contains(UserPath(hidden).name))
    try peer.child.send(.go)
    #expect(try peer.outcome().status != .exited(0))
    #expect(try scene.accesses("overtaken") == [])
  }

  /// While another program keeps filling the directory, a process that wants to overtake gets in,
  /// or receives the reason why not, in time.
  ///
  /// No other process is held up.
  @Test func whoeverFillsADirectoryHoldsUpNobodyElse() throws {
    guard let scene = try GroupScene.make(for: "hidden directories") else { return }
    let (peer, hidden) = try scene.stoppedReplacer()
    let identity = try #require(try scene.names(hidden).first { $0.utf8.count == 16 })
    let (isOver, isFilled) = (Monitor(false), Monitor(false))
    let threads = try (0..<2).map { number in
      try Thread("filling") {
        guard
          let made = try? Descriptor.open(path: "\(hidden)/\(identity)", [.readOnly, .directory])
        else { return }
        var count = 0
        while !isOver.withLock({ $0 }), count < 20_000 {
          count += 1
          let name = "\(number)-\(count)"
          guard (try? made.open(name, [.writeOnly, .create], mode: 0o600)) != nil else { return }
          isFilled.signal { $0 = true }
        }
      }
    }
    isFilled.wait(until: .now + patience) { $0 ? () : nil }
    let start = Instant.now
    let bystander = try scene.start(.bob, .coordinate(.write, scene.folder + "/other", .nothing))
    do {
      try scene.coordinator().write(
        scene.file, within: .seconds(2), takeOverAfter: .milliseconds(50)
      ) { _ in }
    } catch let error as WormholeError {
      #expect(error.reason.contains("the directory does not become empty"), "\(error)")
    }
    #expect(Instant.now - start < .seconds(20))
    #expect(try bystander.outcome().output == "inside\ndone\n")
    isOver.withLock { $0 = true }
    for thread in threads { thread.join() }
    try scene.coordinator().write(scene.file, takeOverAfter: .milliseconds(50)) { _ in }
    try peer.child.send(.kill)
    _ = try peer.outcome()
    try haveAllLook(scene)
    #expect(try scene.names(scene.folder).filter { $0.hasPrefix(".wormhole-") } == [])
    #expect(try scene.accesses("passed") == [])
    // No process had to take over the lock of arrivals.
    #expect(Set(try scene.names(scene.home + "/lock")) == ["1", "1.d"])
  }

  /// The removal may take long, and another user may see to that.
  @Test func whoeverRemovesWhatIsLeftHasNotTheLockOfArrivals() throws {
    guard let scene = try GroupScene.make(for: "hidden directories") else { return }
    let (_, named) = try make(nil, scene)
    try scene.plant(.alice, GroupScene.entry([scene.file], hidden: [named]), in: "passed")
    let rule = "unlink~\(GroupScene.identity)@1:before:stop"
    let stopped = try scene.start(
      .alice, .coordinate(.write, scene.file, .nothing), environment: ["WORMHOLE_FAULTS=\(rule)"])
    try stopped.waitUntilStopped()
    let bob = try scene.start(.bob, .coordinate(.write, scene.file, .nothing)).outcome()
    #expect(bob.output == "inside\ndone\n", "\(bob.errors)")
    #expect(Set(try scene.names(scene.home + "/lock")) == ["1", "1.d"])
    try stopped.child.send(.go)
    #expect(try stopped.outcome().output == "inside\ndone\n")
  }

  /// Root removes for Alice, and she could not remove what only Bob can enter.
  @Test func forAnotherUserNobodyElsesDirectoriesAreEmptied() throws {
    guard let scene = try GroupScene.make(for: "hidden directories") else { return }
    let (real, named) = try make(nil, scene)
    let bobs = "\(real)/\(GroupScene.identity).0/bobs"
    try Descriptor.makeDirectory(path: bobs, mode: 0o700)
    try Descriptor.open(path: bobs + "/secret", [.writeOnly, .create], mode: 0o600).write("his")
    for path in [bobs, bobs + "/secret"] { try scene.give(path, to: .bob, mode: 0o700) }
    try scene.plant(.alice, GroupScene.entry([scene.file], hidden: [named]), in: "passed")
    _ = try scene.container.repair()
    try scene.coordinator().write(scene.file) { _ in }
    #expect(try scene.names(bobs) == ["secret"])
    #expect(try scene.accesses("passed") == [GroupScene.name])
  }
}
