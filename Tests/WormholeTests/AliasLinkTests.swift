import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A put whose second name another program has taken changes nothing.
@Suite(.blocking) struct AliasLinkTests {
  @Test func aLinkToAnotherTargetIsNeitherTakenForTheAliasNorReplaced() throws {
    let log = Heard<String>()
    let meeting = try Meeting { $0.log = { log.add($0.text) } }
    let channel = meeting.container.channel("film", of: String.self)
    let alias = try Alias(["film"], channel: "film", in: meeting.container)
    try meeting.folder.descriptor.makeSymbolicLink("film", to: "elsewhere")
    let error = try failure { try channel.put("Metropolis", alias: alias) }
    #expect(error.errno == Errno.fileExists.rawValue)
    #expect(error.operation == "create link" && error.subject == alias.location)
    #expect(try channel.value == nil)
    #expect(try meeting.folder.descriptor.readSymbolicLink("film") == Array("elsewhere".utf8))
    // A clear of the unwritten channel does not take the link for its own either.
    #expect(try channel.clear(alias: alias) == 0)
    #expect(log.all.filter { $0.contains("may not match") } == [])
    try meeting.folder.descriptor.unlink("film")
    #expect(try channel.put("Metropolis", alias: alias) > 0)
    let target = try meeting.folder.descriptor.readSymbolicLink("film")
    #expect(String(decoding: target, as: UTF8.self) == "c/channels/film/value.plist")
  }

  @Test func aFileInPlaceOfTheLinkIsReportedAsAFile() throws {
    let log = Heard<String>()
    let meeting = try Meeting { $0.log = { log.add($0.text) } }
    let channel = meeting.container.channel("film", of: String.self)
    let alias = try Alias(["film"], channel: "film", in: meeting.container)
    try meeting.folder.write("mine", to: "film")
    let error = try failure { try channel.put("Metropolis", alias: alias) }
    #expect(error.errno == Errno.fileExists.rawValue)
    #expect(error.operation == "create link" && error.subject == alias.location)
    #expect(try channel.value == nil)
    #expect(try meeting.folder.read("film") == "mine")
    #expect(log.all.filter { $0.contains("may not match") } == [])
  }

  /// There is no link to remove, however that has come about.
  @Test func aFileInPlaceOfTheLinksDirectoryKeepsNoValue() throws {
    let log = Heard<String>()
    let meeting = try Meeting { $0.log = { log.add($0.text) } }
    let channel = meeting.container.channel("film", of: String.self)
    let alias = try Alias(["links", "film"], channel: "film", in: meeting.container)
    #expect(try channel.put("Metropolis", alias: alias) > 0)
    try meeting.folder.descriptor.rename("links", to: meeting.folder.descriptor, "moved")
    try meeting.folder.write("", to: "links")
    #expect(try channel.clear(alias: alias) > 0)
    #expect(try channel.value == nil)
    #expect(log.all.filter { $0.contains("may not match") } == [])
    let error = try failure { try channel.put("Sunrise", alias: alias) }
    #expect(error.errno == Errno.notADirectory.rawValue)
    #expect(try channel.value == nil)
  }
}
