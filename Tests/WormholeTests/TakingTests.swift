import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Taking the file of a message out of a group's container, where other users may exchange the file
/// after its comparison.
@Suite(.blocking) struct TakingTests {
  private func exchange(_ files: FilePair, _ make: (borrowing Descriptor, String) throws -> Void)
    throws
  {
    let folder = try Descriptor.open(path: files.home("files"), [.readOnly, .directory])
    let name = try #require(try files.names("files").first)
    try folder.unlink(name)
    try make(folder, name)
  }

  @Test(arguments: [false, true]) func whatWasComparedIsTaken(_ isReplacing: Bool) throws {
    let files = try FilePair { $0.sharing = .group }
    try files.make("film", size: 1000)
    if isReplacing { try files.make("taken", size: 10) }
    let sent = try Digest(files.path("film"))
    _ = try files.phone.send(file: files.path("film"))
    try files.handle { message in
      try #require(message.file).move(to: files.path("taken"), replacing: isReplacing)
    }
    #expect(try Digest(files.path("taken")) == sent)
    #expect(try files.folder.descriptor.status(of: "taken").links == 1)
    #expect(try files.folder.descriptor.names().sorted() == ["film", "taken"])
    try files.waitUntilNothingIsLeftOfAGroup()
  }

  @Test func aLinkThatWasPutThereAfterwardsIsNotTaken() throws {
    let files = try FilePair { $0.sharing = .group }
    try files.make("film", size: 1000)
    try files.make("secret", size: 1000, seed: 2)
    _ = try files.phone.send(file: files.path("film"))
    try files.handle { message in
      try exchange(files) { folder, name in
        try folder.makeSymbolicLink(name, to: files.path("secret"))
      }
      let file = try #require(message.file)
      let error = try failure { try file.move(to: files.path("taken")) }
      #expect(error.code == .refused, "\(error)")
      try exchange(files) { folder, name in
        try folder.open(name, [.writeOnly, .create], mode: 0o600).write(
          [UInt8](repeating: 1, count: 1000))
      }
      #expect(try failure { try file.move(to: files.path("taken")) }.code == .damaged)
    }
    #expect(try files.folder.descriptor.names().sorted() == ["film", "secret"])
  }
}

extension FilePair {
  fileprivate func waitUntilNothingIsLeftOfAGroup() throws {
    try eventually("nothing is left") {
      try ["inbox", "claimed", "files"].allSatisfy { try names($0).isEmpty }
    }
  }
}
