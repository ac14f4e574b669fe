import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Renames, links and listings.
@Suite(.blocking) struct NamesTests {
  private let folder: TemporaryDirectory

  init() throws {
    folder = try TemporaryDirectory()
    try folder.write("one", to: "a")
    try folder.write("two", to: "b")
  }

  @Test func replacingRenameReplaces() throws {
    try folder.descriptor.rename("a", to: folder.descriptor, "b")
    #expect(try folder.descriptor.names() == ["b"])
    #expect(try folder.read("b") == "one")
  }

  @Test func noReplaceRenameRefuses() throws {
    #expect(throws: Errno.fileExists) {
      try folder.descriptor.rename("a", to: folder.descriptor, "b", .notReplacing)
    }
    #expect(try folder.read("b") == "two")
    try folder.descriptor.rename("a", to: folder.descriptor, "c", .notReplacing)
    #expect(try folder.read("c") == "one")
  }

  @Test func exchangeSwapsBothFiles() throws {
    let before = try folder.descriptor.status(of: "a").inode
    try folder.descriptor.rename("a", to: folder.descriptor, "b", .exchanging)
    #expect(try folder.read("a") == "two")
    #expect(try folder.read("b") == "one")
    #expect(try folder.descriptor.status(of: "b").inode == before)
  }

  @Test func exchangeNeedsBothNames() throws {
    #expect(throws: Errno.noSuchFile) {
      try folder.descriptor.rename("a", to: folder.descriptor, "c", .exchanging)
    }
    #expect(throws: Errno.noSuchFile) {
      try folder.descriptor.rename("c", to: folder.descriptor, "a", .exchanging)
    }
  }

  /// The fence of a holder that was taken over: no file comes out of a removed directory.
  @Test func nothingIsMadeInARemovedDirectory() throws {
    try folder.descriptor.makeDirectory("dead", mode: 0o700)
    let dead = try folder.descriptor.open("dead", [.readOnly, .directory])
    try folder.descriptor.removeDirectory("dead")
    #expect(throws: Errno.noSuchFile) {
      _ = try dead.open("file", [.writeOnly, .create], mode: 0o600)
    }
    #expect(throws: Errno.noSuchFile) { try folder.descriptor.rename("a", to: dead, "a") }
  }

  @Test func linkRefusesATakenName() throws {
    #expect(throws: Errno.fileExists) {
      try folder.descriptor.link("a", to: folder.descriptor, "b")
    }
    try folder.descriptor.link("a", to: folder.descriptor, "c")
    #expect(try folder.descriptor.status(of: "c").links == 2)
  }

  @Test func removingAFullDirectoryFails() throws {
    try folder.descriptor.makeDirectory("full", mode: 0o700)
    let full = try folder.descriptor.open("full", [.readOnly, .directory])
    _ = try full.open("file", [.writeOnly, .create], mode: 0o600)
    #expect(throws: Errno.directoryNotEmpty) { try folder.descriptor.removeDirectory("full") }
  }

  @Test func listsEveryNameOfALargeDirectory() throws {
    let empty = try TemporaryDirectory()
    let names = Set((0..<2000).map { "a name of some length, number \($0)" })
    for name in names { _ = try empty.descriptor.open(name, [.writeOnly, .create], mode: 0o600) }
    let listed = try empty.descriptor.names()
    #expect(listed.count == names.count)
    #expect(Set(listed) == names)
    // The same descriptor lists again from the start.
    #expect(try empty.descriptor.names().count == names.count)
  }

  @Test func namesThatAreNotUTF8AreSeenAsBytes() throws {
    let name: [CChar] = [-1, 0x41, -2, 0]
    _ = try folder.descriptor.open(name, [.writeOnly, .create], mode: 0o600)
    #expect(try Set(folder.descriptor.names()) == ["a", "b"])
    var seen: [[CChar]] = []
    try folder.descriptor.forEachName { found throws(Errno) in
      if found[0] < 0 { seen.append(Array(UnsafeBufferPointer(start: found, count: 4))) }
      return true
    }
    #expect(seen == [name])
  }

  @Test func listingStopsWhenAsked() throws {
    var count = 0
    try folder.descriptor.forEachName { _ throws(Errno) in
      count += 1
      return false
    }
    #expect(count == 1)
  }
}
