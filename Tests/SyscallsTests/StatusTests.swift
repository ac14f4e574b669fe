import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The kernel's information on files and file systems.
@Suite(.blocking) struct StatusTests {
  private let folder: TemporaryDirectory

  init() throws {
    folder = try TemporaryDirectory()
    try folder.write("12345", to: "file")
  }

  @Test func tellsKindsApart() throws {
    try folder.descriptor.makeSymbolicLink("link", to: "file")
    try folder.descriptor.makeFIFO("fifo", mode: 0o600)
    try folder.descriptor.makeDirectory("folder", mode: 0o700)
    #expect(try folder.descriptor.status(of: "file").kind == .regular)
    #expect(try folder.descriptor.status(of: "link").kind == .symbolicLink)
    #expect(try folder.descriptor.status(of: "fifo").kind == .fifo)
    #expect(try folder.descriptor.status(of: "folder").kind == .directory)
    #expect(try Descriptor.open(path: "/dev/null", [.readOnly]).status().kind == .device)
  }

  @Test func tellsSizeOwnerAndMode() throws {
    let file = try folder.descriptor.open("file", [.readWrite])
    try file.setMode(0o640)
    let status = try file.status()
    #expect(status.size == 5)
    #expect(status.links == 1)
    #expect(status.mode == 0o640)
    #expect(status.owner == Processes.effectiveUser)
    #expect(status.isSameFile(as: try folder.descriptor.status(of: "file")))
    #expect(!status.isSameFile(as: try folder.descriptor.status()))
  }

  @Test func touchingMovesTheTime() throws {
    let file = try folder.descriptor.open("file", [.readWrite])
    let before = try file.status().modified
    try eventually("the time of the file moves on") {
      try file.touch()
      return try file.status().modified > before
    }
  }

  @Test func reservesAndTruncates() throws {
    let file = try folder.descriptor.open("file", [.readWrite])
    try file.reserve(10_000)
    #expect(try file.status().size == 10_000)
    try file.truncate(to: 3)
    #expect(try folder.read("file") == "123")
  }

  @Test func knowsItsFileSystem() throws {
    let status = try folder.descriptor.fileSystem()
    #expect(status.type != 0)
    #expect(status.freeBytes > 0)
    #expect(!status.isReadOnly)
    let process = try Descriptor.open(path: "/proc", [.readOnly, .directory]).fileSystem()
    #expect(process.type == 0x9fa0)
  }

  @Test func linksAreReadAsTheyWereWritten() throws {
    try folder.descriptor.makeSymbolicLink("link", to: "some/where else")
    let target = try folder.descriptor.readSymbolicLink("link")
    #expect(String(decoding: target, as: UTF8.self) == "some/where else")
  }

  /// A file in place of a directory is damage, and what is below it is not just missing.
  @Test func onlyTheGivenErrorIsIgnored() throws {
    let found = try ignoring(.noSuchFile, folder.descriptor.status(of: "file"))
    #expect(found?.size == 5)
    let missing = try ignoring(.noSuchFile, folder.descriptor.status(of: "none"))
    #expect(missing?.size == nil)
    #expect(throws: Errno.notADirectory) {
      _ = try ignoring(.noSuchFile, folder.descriptor.status(of: "file/none"))
    }
    let below = try ignoring(.notADirectory, folder.descriptor.status(of: "file/none"))
    #expect(below?.size == nil)
    #expect(throws: Errno.noSuchFile) {
      _ = try ignoring(.notADirectory, folder.descriptor.status(of: "none"))
    }
  }

  @Test func errorsHaveNamesAndWords() {
    #expect(Errno.noSpace.name == "ENOSPC")
    #expect(Errno.noSpace.description == "no space left on device")
    #expect(Errno(name: "ENOSPC") == .noSpace)
    #expect(Errno(name: "ENOTHING") == nil)
    #expect(Errno(rawValue: 9999).name == "errno 9999")
  }
}
