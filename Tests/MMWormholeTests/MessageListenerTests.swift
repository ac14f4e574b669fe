import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeDropIns

@testable import MMWormhole

/// Messages that wait for a listener's queue, and the listener that receives them.
@Suite(.blocking) struct MessageListenerTests {
  private let heard = Heard<String>()
  private let queue = DispatchQueue(label: "listeners")
  private let callbacks: CallbackQueue
  private let listener: MessageListener
  private let channel = MessageVersion.Source(container: Container(), name: "m")

  private final class Container: Sendable {}

  init() {
    callbacks = CallbackQueue(queue, for: "a listener")
    listener = MessageListener("m", Self.hearer("first", heard))
  }

  private static func hearer(_ name: String, _ heard: Heard<String>) -> MessageListener.Hearer {
    MessageListener.Hearer { heard.add("\(name) \($0.map { "\($0)" } ?? "nil")") }
  }

  private func version(
    _ number: Int, of channel: MessageVersion.Source? = nil
  ) -> MessageVersion {
    MessageVersion(source: channel ?? self.channel, number: number)
  }

  private func find(
    _ number: Int?, _ text: String, on callbacks: CallbackQueue? = nil,
    of channel: MessageVersion.Source? = nil
  ) {
    let found = MessageListener.Found(version: number.map { version($0, of: channel) }) {
      UncheckedBox<Any?>(text)
    }
    listener.found(found, on: callbacks ?? self.callbacks)
  }

  /// Returns the messages received because of the body, which runs while the queue is busy.
  private func whileBusy(_ body: () -> Void) -> [String] {
    let before = heard.count
    queue.suspend()
    body()
    queue.resume()
    queue.sync {}
    return Array(heard.all.dropFirst(before))
  }

  @Test func onlyTheLastWaitingMessageIsReceived() {
    #expect(whileBusy { for version in 1...3 { find(version, "\(version)") } } == ["first 3"])
  }

  /// The watch of an earlier messenger may find a message a second time.
  @Test func aVersionIsReceivedOnceAndNeverAfterALaterOne() {
    for version in [2, 2, 1, 3, 3] {
      find(version, "\(version)")
      queue.sync {}
    }
    #expect(heard.all == ["first 2", "first 3"])
    // Messages without a version are all received.
    for _ in 0..<2 {
      find(nil, "none")
      queue.sync {}
    }
    #expect(heard.all.suffix(2) == ["first none", "first none"])
  }

  @Test func aForgottenMessageIsNotReceived() {
    #expect(
      whileBusy {
        find(4, "4")
        listener.forget(upTo: version(4))
      } == [])
    #expect(
      whileBusy {
        listener.forget(upTo: version(6))
        find(6, "6")
      } == [])
    #expect(
      whileBusy {
        find(8, "8")
        listener.forget(upTo: version(7))
      } == ["first 8"])
  }

  /// The watches of two messengers run at the same time for a while.
  @Test func channelsCountTheirOwnVersions() {
    let others = [
      MessageVersion.Source(container: Container(), name: "m"),
      MessageVersion.Source(container: channel.container, name: "other"),
    ]
    for other in others {
      let received = heard.count
      find(9, "9")
      queue.sync {}
      find(1, "1", of: other)
      queue.sync {}
      find(8, "8")
      find(1, "1", of: MessageVersion.Source(container: other.container, name: other.name))
      queue.sync {}
      #expect(heard.all.dropFirst(received).last == "first 1")
    }
    #expect(heard.all == ["first 9", "first 1", "first 1"])
  }

  @Test func aForgottenMessageIsOneOfItsChannel() {
    let other = MessageVersion.Source(container: Container(), name: "m")
    #expect(
      whileBusy {
        find(4, "4")
        listener.forget(upTo: version(9, of: other))
      } == ["first 4"])
  }

  @Test func aWaitingMessageGoesToTheNewListener() {
    let received = whileBusy {
      find(1, "1")
      #expect(listener.replace(Self.hearer("second", heard)) != nil)
    }
    #expect(received == ["second 1"])
  }

  @Test func aStoppedListenerReceivesNothing() {
    #expect(
      whileBusy {
        find(1, "1")
        listener.stop()
        find(2, "2")
      } == [])
    #expect(listener.replace(Self.hearer("second", heard)) == nil, "it has been stopped for good")
    find(3, "3")
    queue.sync {}
    #expect(heard.all == [])
  }

  /// A message that waits for the earlier queue is dropped if a later one waits for the new queue.
  @Test func theEarlierQueueDoesNotReceiveAMessageOfTheNewQueue() {
    let new = DispatchQueue(label: "new")
    new.suspend()
    #expect(
      whileBusy {
        find(1, "1")
        find(2, "2", on: CallbackQueue(new, for: "a listener"))
      } == [])
    new.resume()
    new.sync {}
    #expect(heard.all == ["first 2"])
  }
}
