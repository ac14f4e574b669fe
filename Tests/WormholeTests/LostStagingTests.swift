import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// `staging/` is removed while an instance has it open: the next operation makes it again.
@Suite(.blocking) struct LostStagingTests {
  enum Step: CaseIterable, Sendable {
    case put, send, sendFile, ask, setContext, join, askAsGuest
  }

  @Test(arguments: Step.allCases, [Sharing.owner, .group])
  func whatNeedsItGoesOn(_ step: Step, _ sharing: Sharing) throws {
    let meeting = try Meeting { $0.sharing = sharing }
    let container = meeting.container
    let (phone, watch) = (try container.join(as: "phone"), try container.join(as: "watch"))
    let answering = watch.respond(to: Int.self, kind: "add") { $0 + 1 }
    let file = meeting.folder.path + "/file"
    try meeting.folder.write("content", to: "file")
    let before = try Descriptor.open(path: meeting.path + "/staging", [.readOnly, .directory])

    #expect(try run("rm", ["-r", meeting.path + "/staging"]).status == .exited(0))
    for _ in 0..<2 {
      switch step {
      case .put: try container.channel("new", of: Int.self).put(2)
      case .send: try phone.peer("watch").send(1)
      case .sendFile: try phone.peer("watch").send(file: file)
      case .ask: #expect(try phone.peer("watch").request(1, kind: "add") == 2)
      case .setContext: try phone.peer("watch").setContext(1)
      case .join: try container.join(as: "third").leave()
      case .askAsGuest: #expect(try container.guest().peer("watch").request(1, kind: "add") == 2)
      }
    }
    #expect(try before.status().links == 0)
    #expect(try Descriptor.status(ofPath: meeting.path + "/staging").kind == .directory)
    answering.stop()
  }

  /// No directory is made after the container itself has been removed.
  @Test func withoutItsContainerItIsNotMade() throws {
    let meeting = try Meeting()
    try meeting.container.channel("n", of: Int.self).put(1)
    #expect(try run("rm", ["-r", meeting.path]).status == .exited(0))
    #expect(throws: WormholeError.self) {
      try meeting.container.channel("new", of: Int.self).put(1)
    }
    #expect((try? Descriptor.status(ofPath: meeting.path)) == nil)
  }
}
