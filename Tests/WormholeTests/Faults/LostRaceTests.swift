import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Calls that another process or thread overtakes between two of their steps.
@Suite(.blocking) struct LostRaceTests {
  /// Whoever has not buried the message has not settled it either.
  @Test func aDirectoryThatAnotherProcessTakesIsNotBuried() throws {
    let meeting = try Meeting()
    let container = meeting.container
    let name = try container.peer("watch").send(1, .quick()).name
    let home = try #require(try container.storage.existingMember("watch"))
    #expect(try home.remove(name.text, from: .inbox))
    let claimed = ClaimedName(name, attempt: 1)
    _ = try home.part(.claimed)
    try meeting.folder("members/watch/claimed").makeDirectory(claimed.text, mode: 0o700)
    let settlement = Settlement(
      container: container, home: home, claims: home, senders: SenderHomes(container.storage),
      supersession: "another process has the message")
    // The first rename is that of the reason.
    let rule = FaultRule(.rename, path: "dead/\(name.text)", number: 2, .fail(.noSuchFile))
    try FaultPoints.with([rule]) {
      let error = try failure { try settlement.giveUp(claimed, attempts: 1, "a reason") }
      #expect(error.code == .superseded, "\(error)")
    }
    #expect(try meeting.names("members/watch/dead") == [])
    try settlement.giveUp(claimed, attempts: 1, "a reason")
    #expect(try container.peer("watch").deadLetters.map(\.reason) == ["a reason"])
    #expect(try meeting.names("members/watch/claimed") == [])
  }

  /// The cut comes before the request counts as placed, and no further one follows.
  ///
  /// The error of a message with a confirmation has the operation of a message.
  @Test(arguments: [false, true])
  func aRequestFailsIfTheLinkIsCutWhileItIsPlaced(_ isMessage: Bool) throws {
    let link = CutLink()
    let pair = try Pair { $0.link = link }
    let (phone, pause, ends) = (pair.phone, FaultPause(), Heard<WormholeError>())
    let asking = try Thread("asking") {
      FaultPoints.with([FaultRule(.rename, path: "/live/", .pause(pause))]) {
        do throws(WormholeError) {
          if isMessage {
            try phone.sendAndWait(1, within: patience)
          } else {
            _ = try phone.request(1, as: Int.self, within: patience)
          }
        } catch {
          ends.add(error)
        }
      }
    }
    try eventually("the request is about to be placed") { pause.isReached }
    link.cut()
    pause.open()
    asking.join()
    #expect(ends.all.map(\.code) == [.unreachable])
    #expect(ends.all.map(\.reason) == ["the test has cut the link to the peer"])
    let operation = isMessage ? "send message to" : "get a reply from"
    #expect(ends.all.map(\.operation) == [operation])
  }

  /// The handler is stopped after the message was assigned to it, which is no overload.
  @Test(arguments: [false, true])
  func aMessageForAStoppedHandlerHasNoHandler(_ isAsynchronous: Bool) throws {
    let pair = try Pair()
    let own = Monitor<Subscription?>(nil)
    let number = pair.watch.live.add(hearing: nil) { _ in
      own.withLock { $0 }?.stop()
      return nil
    }
    let hearing: Subscription
    if isAsynchronous {
      hearing = pair.watch.receiveImmediate { (_: ImmediateMessage) async in await Task.yield() }
    } else {
      hearing = pair.watch.takeImmediate(kinds: nil) { _ in true }
    }
    own.withLock { $0 = hearing }
    let error = try failure { try pair.phone.sendAndWait(1, within: patience) }
    #expect(error.code == .rejected)
    #expect(error.reason == "'watch' has no handler for immediate messages of kind 'Int'")
    own.withLock { $0 = nil }
    pair.watch.live.remove(number)
  }

  /// A handler that declines a message is still there.
  @Test func aMessageThatAHandlerDeclinesIsRefusedAsTooMuch() throws {
    let pair = try Pair()
    let hearing = pair.watch.takeImmediate(kinds: nil) { _ in false }
    let error = try failure { try pair.phone.sendAndWait(1, within: patience) }
    #expect(error.code == .rejected && error.reason == LiveMailbox.tooMuch)
    hearing.stop()
  }

  /// The directory's name is trusted for a moment, and the member was removed within it.
  @Test func aContextIsSetThoughTheMemberWasJustRemoved() throws {
    let pair = try Pair()
    let rule = FaultRule(.rename, path: "watch/context/", .fail(.noSuchFile))
    var isSet = false
    try FaultPoints.with([rule]) { isSet = try pair.phone.setContext(1) }
    #expect(isSet)
    #expect(try pair.phone.sentContext?.value(as: Int.self) == 1)
  }
}

/// A link that a test cuts.
private final class CutLink: MessageLink {
  private struct State {
    var isCut = false
    var watchers: [@Sendable () -> Void] = []
  }

  private final class Token: Sendable {}

  private let state = Monitor(State())

  func cut() {
    let watchers = state.withLock { state in
      state.isCut = true
      return state.watchers
    }
    for watcher in watchers { watcher() }
  }

  private var isCut: Bool { state.withLock { $0.isCut } }

  func isCut(between one: String, and other: String) -> Bool { one != other && isCut }

  func watch(_ changed: @escaping @Sendable () -> Void) -> any AnyObject & Sendable {
    state.withLock { $0.watchers.append(changed) }
    return Token()
  }

  func haveArrived(
    _ letters: [LinkLetter], again: @escaping @Sendable () -> Void
  ) -> [Bool] {
    letters.map { _ in !isCut }
  }

  func losesAcknowledgement(of letter: LinkLetter, place: Int) -> Bool { false }

  func carry(_ letter: LinkLetter, _ arrive: @escaping @Sendable () -> Void) {
    if !isCut { arrive() }
  }
}
