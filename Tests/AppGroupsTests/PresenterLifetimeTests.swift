import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Presenters that come and go.
@Suite struct PresenterLifetimeTests {
  /// The last reference to a presenter may be held by a reader of the list, under a lock.
  @Test(.blocking) func aPresenterMayEndWhileOthersAreAskedFor() throws {
    let peer = try Running(
      Programs.built("DropInPeer"), ["fleeting", "100000"], environment: [GroupsRoot.setting])
    #expect(try peer.outcome().status == .exited(0))
  }

  /// A forked child has the coordinators of its parent, but not the presenters of its parent.
  @Test(
    .blocking, .notSanitized("a copy of a process with threads may hang in its code"),
    arguments: [false, true])
  func aForkedChildAsksThePresenterOfItsParent(namesPurpose: Bool) throws {
    let folder = try TemporaryDirectory()
    let file = folder.path + "/a"
    try Data("old".utf8).write(to: URL(fileURLWithPath: file))
    let peer = try Running(
      Programs.built("DropInPeer"), ["fork-presenting", file, "\(namesPurpose)"],
      environment: [GroupsRoot.setting])
    try eventually("the child has written") { try peer.output.contains("the child ended: 0\n") }
    try eventually("the parent reads the file") { try peer.output.contains("shows child\n") }
    try eventually("the parent was asked") { try peer.output.contains("writer\n") }
    #expect(try peer.errors == "")
  }
}
