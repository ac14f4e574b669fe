import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Files that a forked child does not have.
@Suite(.blocking) struct GuardedFileTests {
  private let folder: TemporaryDirectory

  init() throws {
    folder = try TemporaryDirectory()
    try folder.write("", to: "file")
  }

  private func open(_ name: String = "file") throws(Errno) -> GuardedFile {
    try GuardedFile(opening: name, in: folder.descriptor, [.readWrite])
  }

  /// Where a descriptor of another process leads.
  private func target(_ process: Int32, _ number: Substring) throws -> String {
    let directory = try Descriptor.open(path: "/proc/\(process)/fd", [.readOnly, .directory])
    return String(decoding: try directory.readSymbolicLink(String(number)), as: UTF8.self)
  }

  @Test func aCopyHasAnotherFileUnderTheNumber() throws {
    let parent = try Running(.guardForks(folder.path, "file"))
    try eventually("it has forked") { try parent.output.hasSuffix("\n") }
    let words = try parent.output.split { $0 == " " || $0 == "\n" }
    let copies = [words[0], words[3]].compactMap { Int32($0) }
    defer { for copy in copies { try? Processes.send(.kill, to: copy) } }
    try #require(copies.count == 2)
    // A waiting child has come through the guard.
    try eventually("they wait") { try copies.allSatisfy { try Processes.state($0) == "S" } }
    let copy = copies[0]
    let file = folder.path + "/file"
    #expect(try target(parent.child.process, words[1]) == file)
    #expect(try target(copy, words[2]) == file)
    // A file that the first child has opened under the number is no concern of the guard.
    #expect(try target(copies[1], words[1]) == "/dev/null")
    // A descriptor without rights, and closed by exec as all descriptors are.
    #expect(try target(copy, words[1]) == "/")
    let status = try Descriptor.open(path: "/proc/\(copy)/fdinfo/\(words[1])", [.readOnly])
    let flags = String(decoding: try status.contents(), as: UTF8.self)
      .split(separator: "\n").first { $0.hasPrefix("flags:") }
    // O_PATH and O_CLOEXEC, octal.
    let bits = flags.flatMap { Int($0.split(separator: "\t").last ?? "", radix: 8) }
    #expect((bits ?? 0) & 0o12000000 == 0o12000000, "\(flags ?? "none")")
  }

  @Test func itCanBeUsedUntilItIsClosed() throws {
    let file = try open()
    #expect(try file.with { file throws(Errno) in try file.status().kind } == .regular)
    file.close()
    file.close()
    #expect(try file.with { file throws(Errno) in try file.status().kind } == nil)
  }

  @Test func whatCannotBeOpenedKeepsNobodyOut() throws {
    #expect(throws: Errno.noSuchFile) { try open("none") }
    // If forks were still kept out, the call would wait for ever.
    try open().close()
  }

  /// Of files or of entries in the table: the caller gets an error, and has room again afterwards.
  @Test func tooManyAreAnError() throws {
    let outcome = try run(.guardMany(folder.path, "file"))
    #expect(outcome.errors == "")
    #expect(outcome.output == "EMFILE\ndone\n")
  }
}
