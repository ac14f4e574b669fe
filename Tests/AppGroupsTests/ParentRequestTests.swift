import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeDropIns
import WormholeSyscalls

@testable import AppGroups

/// Held by tests in which this process serves requests: the end of the service ends all of them.
let servingTurn = Monitor(0)

/// Requests that the containing app of a group handles in this process.
@Suite(.blocking) struct ParentRequestTests {
  private let group: String

  init() throws {
    try GroupsRoot.use()
    group = "group.test.\(UUID().uuidString)"
  }

  /// Replies to the number in a request.
  private final class Parent: UIApplicationDelegate {
    let heard = Heard<String>()

    func application(
      _ application: UIApplication, handleWatchKitExtensionRequest userInfo: [AnyHashable: Any]?,
      reply: @escaping @Sendable ([AnyHashable: Any]?) -> Void
    ) {
      heard.add(userInfo.map { "\($0["n"] ?? "nothing")" } ?? "no dictionary")
      switch userInfo?["n"] as? Int {
      case 1: reply(["n": 2])
      case 2: reply(["list": [1, NSNull()] as [Any]])
      case 3: reply([5: "five"])
      case 5: break
      default: reply(nil)
      }
    }
  }

  @Test func theAppRepliesOrRefuses() throws {
    try servingTurn.withLock { _ in try replyOrRefuse() }
  }

  private func replyOrRefuse() throws {
    let parent = Parent()
    try ParentApplication.serve(parent, group: group)
    defer { ParentApplication.stop() }
    #expect(UIApplication.shared.delegate === parent)
    let taken = try failure { try ParentApplication.serve(parent, group: group) }
    #expect(taken.code == .nameTaken)
    let peer = try SharedContainer(group: group).peer(group)
    func ask<Question: Encodable>(_ question: Question) throws -> [String: Int] {
      try peer.request(
        question, as: [String: Int].self, kind: "openParentApplication", within: patience)
    }
    #expect(try ask(["n": 1]) == ["n": 2])
    // A reply of nil is an empty one, and a request that is no dictionary is none.
    #expect(try ask(["n": 4]).isEmpty)
    #expect(try ask([1, 2]).isEmpty)
    let value = try failure { _ = try ask(["n": 2]) }
    #expect(value.code == .rejected)
    #expect("\(value)".contains("'list[1]' has the type NSNull"))
    let key = try failure { _ = try ask(["n": 3]) }
    #expect(key.code == .rejected)
    #expect("\(key)".contains("'5' has the type Int as a key"))
    // Without a reply the extension does not wait for its time limit.
    let released = try failure { _ = try ask(["n": 5]) }
    #expect(released.code == .rejected)
    #expect("\(released)".contains("has released the closure for its reply"))
    #expect(parent.heard.all == ["1", "4", "no dictionary", "2", "3", "5"])
    ParentApplication.stop()
    let gone = try failure { _ = try ask(["n": 1]) }
    #expect(gone.code == .unreachable)
  }

  private final class FleetingDelegate: UIApplicationDelegate {
    private let part: Departing
    init(_ part: Departing) { self.part = part }

    func application(
      _ application: UIApplication, handleWatchKitExtensionRequest userInfo: [AnyHashable: Any]?,
      reply: @escaping @Sendable ([AnyHashable: Any]?) -> Void
    ) {}
  }

  /// The application may hold the last reference to a delegate, after the end of its service.
  @Test func theEndOfAReplacedDelegateMayUseTheApplication() {
    servingTurn.withLock { _ in
      let application = UIApplication.shared
      let outcomes = Heard<Bool>()
      application.delegate = FleetingDelegate(Departing(outcomes) { _ = application.delegate })
      #expect(outcomes.all == [])
      application.delegate = nil
      #expect(outcomes.all == [true])
    }
  }

  @Test func aKeyThatIsNoTextIsRefusedBeforeARequest() {
    let error = #expect(throws: NotAPropertyList.self) { try ParentApplication.take([7: "a"]) }
    #expect(error?.place == "7")
    #expect(error?.type == "Int as a key")
    #expect(!WKInterfaceController.openParentApplication([7: "a"]))
  }
}
