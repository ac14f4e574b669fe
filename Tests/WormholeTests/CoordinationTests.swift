import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Which accesses begin at once, and which accesses wait.
@Suite(.blocking) struct CoordinationTests {
  private let scene: FileScene

  /// No process is suspended here, and on a busy machine each may be starved.
  init() throws { scene = try FileScene(lease: .seconds(10)) }

  @Test func readersShareAndWritersAreAlone() throws {
    try scene.whileSomebody(.reading(scene.path("a"))) { () throws in
      #expect(try scene.isFree(.reading(scene.path("a"))))
      #expect(try !scene.isFree(.writing(scene.path("a"))))
      #expect(try scene.isFree(.writing(scene.path("b"))))
    }
    for intent: (String) -> Coordinator.Intent in [{ .writing($0) }, { .replacing($0) }] {
      try scene.whileSomebody(intent(scene.path("a"))) { () throws in
        #expect(try !scene.isFree(.reading(scene.path("a"))))
        #expect(try !scene.isFree(.replacing(scene.path("a"))))
      }
    }
    #expect(try scene.leftovers() == [])
  }

  @Test func foldersAreInTheWayOfWhatLiesInThem() throws {
    try scene.whileSomebody(.writing(scene.path("a"))) { () throws in
      #expect(try !scene.isFree(.reading(scene.path("a/b/c"))))
      #expect(try !scene.isFree(.reading(scene.folder.path)))
      #expect(try scene.isFree(.writing(scene.path("ab"))))
      #expect(try !scene.isFree(.reading("\(scene.folder.path)/files/./a/")))
    }
    try scene.folder.descriptor.makeSymbolicLink("other", to: "files")
    try scene.folder.descriptor.makeSymbolicLink("link", to: "files/a")
    try scene.folder.write("", to: "files-a")
    try scene.folder.descriptor.rename("files-a", to: scene.folder.descriptor, "files/a")
    try scene.whileSomebody(.writing(scene.path("a"))) { () throws in
      #expect(try !scene.isFree(.reading("\(scene.folder.path)/other/a")))
      #expect(try !scene.isFree(.reading(scene.folder.path + "/link")))
      #expect(try scene.isFree(.reading("\(scene.folder.path)/other/b")))
    }
    // Two spellings of a letter name two files.
    try scene.whileSomebody(.writing(scene.path("\u{E9}"))) { () throws in
      #expect(try scene.isFree(.writing(scene.path("e\u{301}"))))
    }
  }

  /// An access may read some paths and write others.
  @Test func whatAnAccessReadsIsKeptFromWritersThoughItWritesElsewhere() throws {
    let (read, written) = (scene.path("a"), scene.path("b"))
    let intents: [Coordinator.Intent] = [.reading(read), .writing(written)]
    for order in [intents, intents.reversed()] {
      try scene.another().access(order) { (_: Coordinator.Access) throws in
        #expect(try scene.isFree(.reading(read)))
        #expect(try !scene.isFree(.writing(read)))
        #expect(try !scene.isFree(.reading(written)))
      }
    }
    #expect(try scene.leftovers() == [])
  }

  @Test func anAccessToNothingWaitsForNobody() throws {
    let coordinator = scene.another("backup")
    try scene.whileSomebody(.writing(scene.path("a"))) { () throws in
      let paths = try coordinator.access([]) { $0.paths }
      #expect(paths == [])
      let inside = try coordinator.write(scene.path("b")) { _ in
        try coordinator.access([]) { $0.paths }
      }
      #expect(inside == [])
    }
  }

  /// A coordinator that has found no other access need not list again while it is the lock's last
  /// holder.
  @Test func whoWasNotTheLastLooksAgain() throws {
    let coordinator = scene.another()
    try coordinator.write(scene.path("a")) { _ in }
    try scene.whileSomebody(.writing(scene.path("a"))) { () throws in
      #expect(try !scene.isFree(.writing(scene.path("a")), by: coordinator))
    }
  }

  /// An earlier listing is invalid if the coordinator has since held the lock without listing.
  @Test func whoCouldNotLookHasToLookTheNextTime() throws {
    let coordinator = scene.another()
    try coordinator.write(scene.path("a")) { _ in }
    try scene.whileSomebody(.writing(scene.path("a"))) { () throws in
      let rule = FaultRule(.open, path: "waiting", .fail(.inputOutput))
      FaultPoints.with([rule]) {
        let error = #expect(throws: WormholeError.self) {
          try coordinator.write(scene.path("a")) { _ in }
        }
        #expect(error?.errno == Errno.inputOutput.rawValue)
      }
      #expect(try !scene.isFree(.writing(scene.path("a")), by: coordinator))
    }
    #expect(try scene.leftovers() == [])
  }

  @Test func accessesOfOnePurposeDoNotWaitForEachOther() throws {
    let (one, other) = (scene.another("backup"), scene.another("backup"))
    let isIn = Monitor(false)
    try one.write(scene.path("a")) { _ in
      let thread = try Thread("other") {
        try? other.write(scene.path("a")) { _ in isIn.withLock { $0 = true } }
      }
      thread.join()
      #expect(isIn.withLock { $0 })
      #expect(try !scene.isFree(.reading(scene.path("a"))))
    }
  }

  @Test func whatIsReplacedIsReplacedAtTheEndAndOnlyIfTheBodySucceeds() throws {
    let path = scene.path("a")
    for text in ["one", "two"] {
      try scene.another().replace(path) { new, old in
        #expect(old == path)
        try scene.folder.write(text, to: "made")
        try Descriptor.open(path: UserPath(new).directory, [.readOnly, .directory]).take(
          "made", from: scene.folder)
        #expect(try scene.read("a") == (text == "one" ? nil : "one"))
      }
      #expect(try scene.read("a") == text)
    }
    #expect(throws: Missing.self) {
      try scene.another().replace(path) { new, _ in
        try Descriptor.open(path: UserPath(new).directory, [.readOnly, .directory]).take(
          "files/a", from: scene.folder, moving: false)
        throw Missing()
      }
    }
    #expect(try scene.read("a") == "two")
    #expect(try failure { try scene.another().replace(path) { _, _ in } }.code == .notFound)
    #expect(try scene.leftovers() == [])
  }

  /// Names are bytes, whatever the number of their characters in Swift.
  @Test(arguments: ["B\u{fc}cher", "e\u{301}", "\u{301}x", "x\u{600}", "\u{672c}", "\u{1f39f}"])
  func whatIsReplacedMayHaveAnyName(_ name: String) throws {
    let folder = scene.path(name)
    try Descriptor.makeDirectory(path: folder, mode: 0o700)
    for text in ["one", "two"] {
      try scene.another().replace(folder + "/" + name) { new, old in
        #expect(Array(old.utf8) == Array((folder + "/" + name).utf8))
        let made = UserPath(UserPath(new).directory).directory
        #expect(UserPath(made).directory == folder)
        try scene.folder.write(text, to: "made")
        try Descriptor.open(path: UserPath(new).directory, [.readOnly, .directory]).take(
          "made", from: scene.folder)
      }
      #expect(try scene.read(name + "/" + name) == text)
    }
    #expect(try Descriptor.open(path: folder, [.readOnly, .directory]).names() == [name])
    #expect(try scene.folder.descriptor.names().sorted() == ["files", "groups"])
    #expect(try scene.leftovers() == [])
  }

  /// Also if an accent follows the replacement character of a byte that is not text.
  @Test(arguments: ["", "\u{301}"])
  func throughAFolderWhoseNameIsNoTextTheGivenPathIsHandedOn(_ accent: String) throws {
    let commands = #"cd "$0" && name=$(printf "\377$1") && mkdir "$name" && ln -s "$name" link"#
    #expect(try run("sh", ["-c", commands, scene.path(""), accent]).status == .exited(0))
    let path = scene.path("link/a")
    try scene.another().write(path) { given in
      #expect(Array(given.utf8) == Array(path.utf8))
      try Descriptor.open(path: given, [.writeOnly, .create], mode: 0o600).write("new")
    }
    let made = try Descriptor.open(path: path, [.readOnly])
    #expect(try String(decoding: made.contents(), as: UTF8.self) == "new")
  }

  @Test func replacingIsRefusedWhereNothingCanBeMadeBesideIt() throws {
    let path = "/proc/version"
    let error = try failure { try scene.another().replace(path) { _, _ in } }
    #expect(error.operation == "create a directory for the new file beside")
    #expect(try scene.leftovers() == [])
  }

  @Test func aWaitEndsByItsDeadlineOrWhenItIsCancelled() throws {
    try scene.whileSomebody(.writing(scene.path("a"))) { () throws in
      let error = try failure {
        try scene.another().read(scene.path("a"), within: .milliseconds(20)) { _ in }
      }
      #expect(error.code == .timedOut)
      #expect(error.reason.contains("(process \(Processes.current), running)"), "\(error)")
      let coordinator = scene.another()
      let codes = Heard<WormholeError.Code>()
      let thread = try Thread("waiting") {
        do {
          try coordinator.read(scene.path("a")) { _ in }
        } catch {
          if let error = error as? WormholeError { codes.add(error.code) }
        }
      }
      try scene.waitForWaiting(1)
      coordinator.cancel()
      thread.join()
      #expect(codes.all == [.cancelled])
      #expect(try scene.names(in: .waiting) == [])
    }
  }

  @Test func thoseThatCameFirstGoFirstAndReadersDoNotShutAWriterOut() throws {
    let order = Heard<String>()
    var threads: [Thread] = []
    try scene.whileSomebody(.reading(scene.path("a"))) { () throws in
      for (index, name) in ["writer", "reader", "second"].enumerated() {
        let path = scene.path("a")
        let intent: Coordinator.Intent =
          name == "reader" ? .reading(path) : .writing(path)
        threads.append(
          try Thread("waiting") {
            try? scene.another().access([intent]) { _ in order.add(name) }
          })
        try scene.waitForWaiting(index + 1)
      }
    }
    for thread in threads { thread.join() }
    #expect(order.all == ["writer", "reader", "second"])
  }

  @Test func insideAnAccessAllOfTheLibraryWorks() throws {
    let meeting = try Meeting()
    try scene.another().write(scene.path("a")) { _ in
      let number = meeting.container.channel("number", of: Int.self)
      try number.put(1)
      try number.update { $0 = 2 }
      try meeting.container.lock("till").hold {}
      try meeting.container.peer("watch").send(4, .quick())
      try scene.another().read(scene.path("b")) { _ in }
    }
    let error = try failure {
      try meeting.container.channel("number", of: Int.self).update { _ in
        try scene.another().read(scene.path("b")) { _ in }
      }
    }
    #expect(error.code == .nested)
  }

  @Test func nestedOnesThatCouldOnlyWaitForTheirOwnAreRefusedAtOnce() throws {
    let coordinator = scene.another()
    try coordinator.write(scene.path("a")) { path in
      let error = try failure { try scene.another().read(path) { _ in } }
      #expect(error.code == .nested)
      #expect(try coordinator.read(path + "/b") { $0 } == path + "/b")
    }
    // A reader behind a writer that waits for the reader's own access.
    let writer = try coordinator.read(scene.path("a")) { path in
      let writer = try Thread("writer") { try? scene.another().write(path) { _ in } }
      try scene.waitForWaiting(1)
      #expect(try scene.another().read(path, within: .milliseconds(50)) { _ in true })
      // The outer access admits readers, so this writer would have to wait.
      let error = try failure { try coordinator.write(path, within: .seconds(5)) { _ in } }
      #expect(error.code == .deadlock)
      return writer
    }
    writer.join()
  }

  /// Not only the innermost of the accesses around it counts.
  @Test func aConflictWithTheOutermostIsRefusedAtOnce() throws {
    let coordinator = scene.another()
    try coordinator.write(scene.path("a")) { _ in
      try coordinator.read(scene.path("b")) { _ in
        let error = try failure { try scene.another().read(scene.path("a")) { _ in } }
        #expect(error.code == .nested)
        #expect(error.reason.contains("/a'"), "\(error)")
      }
    }
  }

  @Test(arguments: [2, 3]) func ringsAreRefusedBeforeAnyDeadline(_ count: Int) throws {
    try ring(count) { scene.path("\($0)") }
  }

  @Test func ringsOverTwoGroupsAreRefusedToo() throws {
    for name in ["one", "two"] {
      try scene.folder.descriptor.makeDirectory("groups/\(name)", mode: 0o700)
    }
    try ring(3) { index in
      "\(scene.folder.path)/groups/\(index == 0 ? "one" : "two")/\(index)"
    }
  }

  private func ring(_ count: Int, _ path: @escaping @Sendable (Int) -> String) throws {
    let start = Instant.now
    let inside = Monitor(0)
    let ends = Heard<WormholeError.Code?>()
    let threads = try (0..<count).map { index in
      try Thread("ring") {
        do {
          try scene.another().write(path(index)) { _ in
            inside.signal { $0 += 1 }
            let _: Void? = inside.wait(until: .now + patience) { $0 == count ? () : nil }
            try scene.another().write(path((index + 1) % count)) { _ in }
          }
          ends.add(nil)
        } catch {
          ends.add((error as? WormholeError)?.code)
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(ends.all.contains(.deadlock), "\(ends.all)")
    #expect(Set(ends.all).isSubset(of: [.deadlock, nil]), "\(ends.all)")
    #expect(Instant.now - start < .seconds(20))
  }

  /// The identifiers of the two containers decide the order of the two directories.
  @Test(arguments: 0..<8)
  func whatIsReplacedStaysAsItWasIfAnotherPlaceWasTakenOver(_ round: Int) throws {
    let isGroups = round % 2 == 0
    try scene.folder.descriptor.makeDirectory("groups/cinema", mode: 0o700)
    let files = [scene.path("a"), "\(scene.folder.path)/groups/cinema/b"]
    let (read, replaced) = isGroups ? (files[0], files[1]) : (files[1], files[0])
    let group = isGroups ? "wormhole.user" : "cinema"
    let error = try failure {
      try scene.another().access([.reading(read), .replacing(replaced)]) { access in
        try Descriptor.open(path: access.paths[1], [.writeOnly, .create], mode: 0o600).write("new")
        // The same renames as by an access that overtakes.
        let place = try scene.folder.descriptor.open(
          "groups/\(group)/.wormhole/system/coordination", [.readOnly, .directory])
        for name in try place.open("running", [.readOnly, .directory]).names() {
          try place.rename("running/" + name, to: place, "overtaken/" + name)
        }
      }
    }
    #expect(error.code == .superseded)
    #expect((try? Descriptor.status(ofPath: replaced)) == nil)
  }

  @Test func aGroupsFilesAreOrderedByItsContainer() throws {
    try scene.folder.descriptor.makeDirectory("groups/cinema", mode: 0o700)
    let path = "\(scene.folder.path)/groups/cinema/tickets"
    try scene.whileSomebody(.writing(path)) { () throws in
      #expect(try !scene.isFree(.reading(path)))
      #expect(try scene.names(in: .running) == [])
    }
    // A file beside the groups' directories belongs to no group.
    try scene.another().write("\(scene.folder.path)/groups/file") { (_: String) throws in
      #expect(try scene.names(in: .running).count == 1)
    }
  }
}

extension Descriptor {
  /// Moves or links a file from another folder to the name `new`.
  fileprivate func take(
    _ name: String, from folder: TemporaryDirectory, moving: Bool = true
  ) throws(Errno) {
    if moving {
      try folder.descriptor.rename(name, to: self, "new")
    } else {
      try folder.descriptor.link(name, to: self, "new")
    }
  }
}
