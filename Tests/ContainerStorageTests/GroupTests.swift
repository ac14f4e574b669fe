import TestSupport
import TestTraits
import Testing
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Containers that two users share: files of one user are never shut to the other user.
@Suite(.serialized, .blocking, .notSanitized("processes of users who cannot write its log"))
struct GroupTests {
  private let seed = TestRun.seed

  /// An operation of one user, stopped or killed at a system call.
  enum Operation: CaseIterable, Sendable {
    case create, firstPut, update, guest

    func prepare(_ place: SharedPlace) throws {
      switch self {
      case .create: break
      case .firstPut, .guest: _ = try place.run(.alice, .open(place.path))
      case .update:
        _ = try place.run(.alice, .add(place.path, "n", times: 2))
        _ = try place.run(.bob, .add(place.path, "n", times: 1))
      }
    }

    func job(_ path: String) -> PeerJob {
      switch self {
      case .create: .open(path)
      case .firstPut, .update: .add(path, "n", times: 1)
      case .guest: .send(path, from: "phone", to: "watch", 1..<2)
      }
    }
  }

  /// The rules that disturb the operation: right after it makes each directory, and at a few
  /// further calls.
  private func rules(_ operation: Operation, _ action: String) throws -> [String]? {
    guard let place = try SharedPlace.make(for: "a container of a group") else { return nil }
    try operation.prepare(place)
    let trace = place.folder.path + "/trace"
    _ = try place.run(
      .alice, operation.job(place.path), environment: ["WORMHOLE_FAULT_TRACE=\(trace)"])
    let calls = try place.folder.read("trace").split(separator: "\n")
    var random = SeededRandom(seed: seed)
    let some = SweptRun.points(calls.count, &random)
    let rules: [String] = calls.indices.compactMap { index in
      if calls[index].contains("mkdir") { return "any@\(index + 1):after:\(action)" }
      return some.contains(index + 1) ? "any@\(index + 1):before:\(action)" : nil
    }
    return SweptRun.isLong ? rules : Array(rules.shuffled(using: &random).prefix(4))
  }

  @Test(arguments: Operation.allCases, ["stop", "kill"])
  func whoeverStopsOrDiesShutsNobodyOut(_ operation: Operation, _ action: String) throws {
    guard let rules = try rules(operation, action) else { return }
    for rule in rules {
      let where_: Comment = "\(operation) \(rule) seed \(seed)"
      guard let place = try SharedPlace.make(for: "a container of a group") else { return }
      try operation.prepare(place)
      let alice = try place.start(
        .alice, operation.job(place.path), environment: ["WORMHOLE_FAULTS=\(rule)"])
      try eventually("\(where_): stops or ends") {
        try alice.hasEnded || Processes.isStopped(alice.child.process)
      }
      #expect(try place.exclusive() == [], where_)
      let start = Instant.now
      let bob = try place.run(.bob, .add(place.path, "n", times: 1))
      #expect(bob.errors == "" && bob.output != "", where_)
      // A lock that is never taken over would be waited for thirty.
      #expect(Instant.now - start < .seconds(20), where_)
      _ = try alice.waitOrGo()
      let after = try place.run(.alice, .add(place.path, "n", times: 1))
      let last = try place.run(.bob, .add(place.path, "n", times: 1))
      #expect(after.errors + last.errors == "", where_)
      #expect(Int(last.output.dropLast()) == (Int(after.output.dropLast()) ?? 0) + 1, where_)
      #expect(try place.exclusive() == [], where_)
      for user in [SharedPlace.User.alice, .bob] {
        #expect(try staged(place, user) == [], where_)
      }
    }
  }

  private func staged(_ place: SharedPlace, _ user: SharedPlace.User) throws -> [String] {
    let staging = try Descriptor.open(path: place.path + "/staging", [.readOnly, .directory])
    // A user who has made nothing has no folder.
    guard try staging.names().contains("\(user.rawValue)") else { return [] }
    return try staging.open("\(user.rawValue)", [.readOnly, .directory]).names()
  }

  /// An unfinished file is not for other users to read or to rename.
  @Test func whatIsNotFinishedIsNobodyElses() throws {
    guard let place = try SharedPlace.make(for: "what another user is making") else { return }
    let alice = try place.start(
      .alice, .add(place.path, "n", times: 1), environment: ["WORMHOLE_FAULTS=link:before:stop"])
    try alice.waitUntilStopped()
    #expect(try staged(place, .alice).count == 2)
    let own = "\(place.path)/staging/\(SharedPlace.User.alice.rawValue)"
    let status = try Descriptor.open(path: own, [.readOnly, .directory]).status()
    #expect(status.mode == 0o2700 && status.owner == SharedPlace.User.alice.rawValue)
    let bob = try place.run(.bob, .list(own))
    #expect(bob.status == .exited(70) && bob.errors.contains("permission denied"), "\(bob)")
    // Bob opens the container, which sweeps only his own files.
    _ = try place.run(.bob, .open(place.path))
    #expect(try staged(place, .alice).count == 2)
    try alice.child.send(.go)
    #expect(try alice.outcome().output == "1\n")
  }

  /// Another user has made a directory with other tools, or has moved it to the name, and its mode
  /// excludes the group.
  ///
  /// No program removes the directory or changes its mode, not even a program of its owner.
  @Test func aDirectoryThatIsNotForTheGroupStaysAndIsNamed() throws {
    guard let place = try SharedPlace.make(for: "another user's directory") else { return }
    _ = try place.run(.alice, .add(place.path, "n", times: 1))
    for name in ["notices", "channels/n/lock/9.d"] {
      let path = "shared/c/" + name
      _ = try? place.folder.descriptor.removeDirectory(path)
      try place.folder.descriptor.makeDirectory(path, mode: 0o700)
      try place.give(path, to: .alice, mode: 0o700)
      let before = try DirectorySnapshot(of: path, in: place.folder.descriptor)
      let named = "'\(place.path)/\(name)' belongs to user 61001 and has the mode 700"
      let advice = "chmod 2770 '\(place.path)/\(name)'"
      for user in [SharedPlace.User.bob, .alice] {
        let job: PeerJob =
          name == "notices" ? .post(place.path, "gong") : .add(place.path, "n", times: 1)
        let outcome = try place.run(user, job)
        #expect(outcome.errors.contains(named), "\(user): \(outcome.errors)")
        #expect(outcome.errors.contains(advice), "\(user): \(outcome.errors)")
        #expect(try DirectorySnapshot(of: path, in: place.folder.descriptor) == before)
      }
      // A person has checked the directory's content.
      try place.give(path, to: .alice, mode: 0o2770)
      #expect(try place.run(.bob, .post(place.path, "gong")).errors == "")
    }
    #expect(try place.run(.bob, .add(place.path, "n", times: 1)).output == "2\n")
  }

  /// A foreign directory has the name of a user's own folder: only a person can decide on its
  /// owner.
  @Test func aForeignFolderOfAUserIsNamed() throws {
    guard let place = try SharedPlace.make(for: "another user's directory") else { return }
    _ = try place.run(.alice, .add(place.path, "n", times: 1))
    let own = "shared/c/staging/61002"
    try place.folder.descriptor.makeDirectory(own, mode: 0o700)
    try place.give(own, to: .alice, mode: 0o700)
    let words =
      "'staging/61002' belongs to user 61001 and has the mode 700, and user 61002 may not write"
    let refused = try place.run(.bob, .add(place.path, "m", times: 1))
    #expect(refused.errors.contains(words), "\(refused.errors)")
    try place.give(own, to: .bob, mode: 0o770)
    let advice = "chmod 2700 '\(place.path)/staging/61002'"
    #expect(try place.run(.bob, .add(place.path, "m", times: 1)).errors.contains(advice))
    try place.give(own, to: .bob, mode: 0o2700)
    #expect(try place.run(.bob, .add(place.path, "m", times: 1)).output == "1\n")
  }

  /// Whoever may write to a folder could put anything in anything's place.
  @Test(arguments: ["channels", "staging", "channels/n", "channels/n/lock"])
  func whatOthersMayWriteToIsNotUsed(_ name: String) throws {
    let folder = try TemporaryDirectory()
    var options = ContainerOptions.testing()
    options.sharing = .group
    let path = folder.path + "/c"
    func put() throws {
      // Opened again, as another process does.
      try Container.open(path, options: options).slot(.channels, "n").change("update") { _ in
        .put(try BinaryEncoder().encode(1))
      }
    }
    try put()
    let opened = try Descriptor.open(path: path + "/" + name, [.readOnly, .directory])
    try opened.setMode(0o2777)
    let error = #expect(throws: WormholeError.self) { try put() }
    #expect(error?.code == .permissionDenied)
    if name != "staging" { #expect(error?.hint?.contains("unauthorized users may write") == true) }
    try opened.setMode(0o2770)
    try put()
  }

  /// Readers refuse it as well: a file that other users may write to could change while it is read.
  @Test(arguments: ["channels", "channels/n", "channels/n/value.plist"])
  func whatOthersMayWriteToIsNotRead(_ name: String) throws {
    let folder = try TemporaryDirectory()
    var options = ContainerOptions.testing()
    options.sharing = .group
    let path = folder.path + "/c"
    func content() throws -> Slot.Content {
      try Container.open(path, options: options).slot(.channels, "n").read()
    }
    try Container.open(path, options: options).slot(.channels, "n").change("update") { _ in
      .put(try BinaryEncoder().encode(1))
    }
    let opened = try Descriptor.open(path: path + "/" + name, [.readOnly])
    let mode = try opened.status().mode & 0o7777
    try opened.setMode(mode | 0o002)
    let error = #expect(throws: WormholeError.self) { _ = try content() }
    #expect([.permissionDenied, .refused].contains(error?.code))
    #expect(error?.hint?.contains("'chmod o-w' on") == true, "\(error?.description ?? "")")
    try opened.setMode(mode)
    _ = try content()
  }

  /// In a user's own container, the group of a directory is foreign, too.
  @Test func theAdviceExcludesAllForeignWriters() throws {
    let folder = try TemporaryDirectory()
    try folder.descriptor.makeDirectory("staging", mode: 0o700)
    try folder.descriptor.open("staging", [.readOnly, .directory]).setMode(0o777)
    for (sharing, change) in [(Sharing.owner, "go-w"), (.group, "o-w")] {
      let denial = sharing.denial(of: "staging", in: folder.descriptor, at: folder.path)
      #expect(denial?.contains("'chmod \(change)' on the directory") == true, "\(denial ?? "")")
    }
  }

  @Test(arguments: ["members", "members/tv", "members/tv/inbox"])
  func aMembersDirectoryThatOthersMayWriteToIsNotUsed(_ name: String) throws {
    let folder = try TemporaryDirectory()
    var options = ContainerOptions.testing()
    options.sharing = .group
    let path = folder.path + "/c"
    func look() throws {
      let home = try #require(try Container.open(path, options: options).existingMember("tv"))
      try home.list(.inbox) { _ in }
    }
    _ = try Container.open(path, options: options).member("tv")
    try look()
    let opened = try Descriptor.open(path: path + "/" + name, [.readOnly, .directory])
    try opened.setMode(0o2772)
    let error = #expect(throws: (any Error).self) { try look() }
    let isRefused = (error as? WormholeError)?.code == .permissionDenied
    #expect(isRefused || error as? Errno == .notPermitted)
    try opened.setMode(0o2770)
    try look()
  }

  /// The extra cost of a group's container over an owner's: a check of each directory when it is
  /// opened, and nothing afterwards.
  @Test func whatIsOpenIsNotLookedAtAgain() throws {
    var calls: [Sharing: Int] = [:]
    for sharing in [Sharing.owner, .group] {
      let folder = try TemporaryDirectory()
      var options = ContainerOptions.testing()
      options.sharing = sharing
      let slot = try Container.open(folder.path + "/c", options: options).slot(.channels, "n")
      func put() throws { try slot.change("update") { _ in .put(try BinaryEncoder().encode(1)) } }
      for _ in 0..<3 { try put() }
      calls[sharing] = try FaultPoints.with { _ = try slot.read() }.count
    }
    #expect(calls[.group] == calls[.owner], "\(calls)")
  }

  /// An empty directory proves nothing about its maker and stays: any member can have given it the
  /// name.
  @Test func whatAKilledMakerHasLeftBesideStaysAndHindersNoProgram() throws {
    guard let place = try SharedPlace.make(for: "a container of a group") else { return }
    _ = try place.start(
      .alice, .open(place.path), environment: ["WORMHOLE_FAULTS=mkdir@1:after:kill"]
    ).outcome()
    let beside = try Descriptor.open(path: place.directory, [.readOnly, .directory])
    func left() throws -> [String] { try beside.names().filter { $0.hasPrefix(".wormhole-") } }
    let hidden = try #require(try left().first)
    let before = try DirectorySnapshot(of: hidden, in: beside)
    #expect(try place.run(.alice, .open(place.path)).errors == "")
    #expect(try left() == [hidden] && DirectorySnapshot(of: hidden, in: beside) == before)
  }

  /// Between making the hidden directory and the next step, a member renames another directory to
  /// its name.
  ///
  /// Neither the mode of the renamed directory nor the modes of its content change.
  @Test(arguments: ["mkdir@1", "open~.wormhole-@1", "mkdir@2", "fchmod@1"])
  func aDirectoryInThePlaceOfOneThatIsBeingMadeKeepsItsMode(_ call: String) throws {
    guard let place = try SharedPlace.make(for: "a container of a group") else { return }
    try place.folder.descriptor.makeDirectory("shared/private", mode: 0o700)
    try place.folder.write("private", to: "shared/private/letter")
    try place.folder.descriptor.makeDirectory("shared/private/inner", mode: 0o700)
    for name in ["", "/letter", "/inner"] {
      try place.give("shared/private" + name, to: .alice, mode: name == "/letter" ? 0o600 : 0o700)
    }
    let moment = call == "mkdir@1" ? "after" : "before"
    let alice = try place.start(
      .alice, .open(place.path), environment: ["WORMHOLE_FAULTS=\(call):\(moment):stop"])
    try alice.waitUntilStopped()
    let beside = try Descriptor.open(path: place.directory, [.readOnly, .directory])
    let hidden = try #require(try beside.names().first { $0.hasPrefix(".wormhole-") })
    try beside.rename(hidden, to: beside, "aside")
    let before = try DirectorySnapshot(of: "private", in: beside)
    try beside.rename("private", to: beside, hidden)
    try alice.child.send(.go)
    #expect(try alice.outcome().errors == "")
    try beside.rename(hidden, to: beside, "private")
    #expect(try DirectorySnapshot(of: "private", in: beside) == before)
    #expect(try place.run(.bob, .add(place.path, "n", times: 1)).output == "1\n")
  }

  /// The kind of sharing is set when the container is made, and must be the same at each opening.
  @Test func whoeverTakesItForAnothersKindIsRefused() throws {
    for (made, taken) in [(Sharing.owner, Sharing.group), (.group, .owner)] {
      let folder = try TemporaryDirectory()
      var options = ContainerOptions.testing()
      options.sharing = made
      let path = folder.path + "/c"
      let container = try Container.open(path, options: options)
      #expect(try container.root.descriptor.status().mode == (made == .group ? 0o2770 : 0o700))
      options.sharing = taken
      let error = #expect(throws: WormholeError.self) {
        _ = try Container.open(path, options: options)
      }
      #expect(error?.code == .refused)
      #expect(
        error?.reason.contains(made == .group ? "shared by a group" : "to a single user") == true)
      #expect(error?.hint?.contains("--group-shared") == true)
      #expect(try container.root.descriptor.status().mode == (made == .group ? 0o2770 : 0o700))
      // A marker that other users may write to is refused, whatever its content.
      options.sharing = made
      let marker = try container.root.descriptor.open("container.plist", [.readOnly])
      let mode = try marker.status().mode
      try marker.setMode(mode | 0o002)
      #expect(throws: WormholeError.self) { _ = try Container.open(path, options: options) }
      try marker.setMode(mode)
      _ = try Container.open(path, options: options)
    }
  }

  /// A caller has named another directory by mistake, and is not advised to change its mode.
  @Test func noModeIsAdvisedWhereThereIsNoContainer() throws {
    let folder = try TemporaryDirectory()
    try folder.write("", to: "film")
    try folder.descriptor.setMode(0o1777)
    let error = #expect(throws: WormholeError.self) {
      _ = try Container.open(folder.path, options: .testing())
    }
    #expect(error?.code == .refused && error?.reason.contains("is not a container") == true)
    #expect(error?.hint?.contains("chmod") == false)
  }

  /// A first posting makes the file, and is received once all the same.
  @Test func aFirstPostingIsHeardOnce() throws {
    let folder = try TemporaryDirectory()
    var options = ContainerOptions.testing()
    options.sharing = .group
    let container = try Container.open(folder.path + "/c", options: options)
    let heard = Monitor(0)
    let watch = try container.watchNotice("gong") { heard.signal { $0 += 1 } }
    try container.post("gong")
    try eventually("it is heard") { heard.withLock { $0 } == 1 }
    // A second notice of the first posting would arrive before the notice of the second posting.
    let other = Monitor(false)
    let last = try container.watchNotice("last") { other.signal { $0 = true } }
    try container.post("last")
    try eventually("the next is heard") { other.withLock { $0 } }
    #expect(heard.withLock { $0 } == 1)
    watch.stop()
    last.stop()
  }
}
