import AppGroups
import Foundation
import MMWormhole
import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// MMWormhole between processes.
@Suite(.notSanitized("many processes at once"))
struct MMWormholeProcessesTests {
  private let group: String

  init() throws {
    try GroupsRoot.use()
    group = "group.test.\(UUID().uuidString)"
  }

  @Test(.blocking) func ofTenThousandPassesTheLastIsHeardNoneTornAndNoneTwice() throws {
    let count = 10_000
    let wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: "wormhole")
    wormhole.listenerQueue = DispatchQueue(label: "listener")
    let heard = Heard<Int>()
    wormhole.listenForMessage(withIdentifier: "m") { message in
      let values = message as? [String: Any]
      let number = values?["number"] as? Int ?? -1
      let isWhole =
        values?["text"] as? String == String(repeating: "\(number % 10)", count: 1000)
      heard.add(isWhole ? number : -1)
    }
    let peer = try Running(
      Programs.built("DropInPeer"), ["pass", group, "m", "\(count)"],
      environment: [GroupsRoot.setting])
    #expect(try peer.outcome(within: patience * 4).status == .exited(0))
    try heard.wait("the last") { $0.last == count }
    let all = heard.all
    #expect(!all.contains(-1))
    #expect(zip(all, all.dropFirst()).allSatisfy { $0 < $1 })
  }

  /// After each round of racing passes and clears, the link exists if the value exists.
  @Test(.blocking) func valueAndLinkAgreeInTheEnd() throws {
    let rounds = TestRun.isLong ? 1000 : 20
    let wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: nil)
    let files = try #require(wormhole.wormholeMessenger as? MMWormholeFileTransiting)
    for round in 0..<rounds {
      let peers = try (0..<2).map { _ in
        try Running(
          Programs.built("DropInPeer"), ["race", group, "\(round)", "50"],
          environment: [GroupsRoot.setting])
      }
      for peer in peers { #expect(try peer.outcome().status == .exited(0)) }
      let path = try #require(files.filePath(forIdentifier: "\(round)"))
      let link = try? FileManager.default.destinationOfSymbolicLink(atPath: path)
      #expect((link != nil) == (wormhole.message(withIdentifier: "\(round)") != nil))
    }
  }

  /// The three ways of a watch session, to a side that is started later where the way allows it.
  @Test(.blocking) func messagesReachTheOtherSideOfASession() throws {
    let folder = try TemporaryDirectory()
    let phone = try side(
      "phone", in: folder,
      [
        "context=1", "context=1", "file=2", "file=2", "near", "message=3",
        "after=\(folder.path)/heard", "context=1", "wait",
      ])
    let watch = try side("watch", in: folder, ["listen", "wait"])
    func heard() throws -> [String] { try watch.output.split(separator: "\n").map(String.init) }
    // Before, the latest would stand for both.
    try eventually("the first context") { try heard().contains("context 1") }
    try folder.write("", to: "heard")
    try eventually("all") {
      let heard = try heard()
      return heard.filter { $0 == "file 2" }.count == 2 && heard.contains("message 3")
        && heard.filter { $0 == "context 1" }.count >= 2
    }
    _ = phone
  }

  /// A side of a watch session; the container is below the folder.
  private func side(
    _ role: String, in folder: TemporaryDirectory, _ steps: [String]
  ) throws -> Running {
    try Running(
      Programs.built("DropInPeer"), ["mmsession", group] + steps,
      environment: [
        GroupsRoot.setting, "WORMHOLE_ROLE=\(role)", "WORMHOLE_CONTAINER=\(folder.path)/hole",
        "WORMHOLE_GROUP=",
      ])
  }

  @Test(.blocking) func aMessageInAContextIsHeardAlsoAfterAClear() throws {
    let folder = try TemporaryDirectory()
    let phone = try side(
      "phone", in: folder,
      [
        "context=1", "after=\(folder.path)/heard", "clear=context", "context=1", "wait",
      ])
    let watch = try side("watch", in: folder, ["listen", "wait"])
    func heard() throws -> [Substring] { try watch.output.split(separator: "\n") }
    try eventually("the first") { try heard() == ["context 1"] }
    try folder.write("", to: "heard")
    try eventually("the second") { try heard() == ["context 1", "context 1"] }
    _ = phone
  }

  /// The program may have values of its own in the context.
  @Test(.blocking) func clearingAllMessagesKeepsTheProgramsOwnContext() throws {
    let folder = try TemporaryDirectory()
    let phone = try side(
      "phone", in: folder, ["own=mine", "context=1", "keys", "clear-all", "keys", "wait"])
    try eventually("both") { try phone.output.split(separator: "\n").count == 2 }
    #expect(try phone.output == "keys context,mine\nkeys mine\n")
  }

  /// It has the greatest number that there is, too, after which another one must come.
  @Test(.blocking) func aMessageThatCannotBeUnarchivedIsTold() throws {
    let folder = try TemporaryDirectory()
    let phone = try side(
      "phone", in: folder, ["broken=context", "after=\(folder.path)/told", "context=2", "wait"])
    let watch = try side("watch", in: folder, ["listen", "read=context", "wait"])
    try eventually("the failure") { try watch.output.contains("refuses the archive") }
    try folder.write("", to: "told")
    try eventually("the next one") { try watch.output.hasSuffix("context 2\n") }
    _ = phone
  }
}
