import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeDropIns
import WormholeSyscalls

@testable import MMWormhole

/// Messages that wait for a listener's queue, and the listener that receives them.
@Suite(.blocking) struct MessageListenerTests {
  private let heard = Heard<String>()
  private let queue = DispatchQueue(label: "listeners")
  private let callbacks: CallbackQueue
  private let listener: MessageListener
  /// Two channels of one name, in two containers.
  private let channel: MessageVersion.ChannelIdentity
  private let foreign: MessageVersion.ChannelIdentity

  init() throws {
    let folder = try TemporaryDirectory()
    func source(_ name: String) throws -> MessageVersion.ChannelIdentity {
      let container = try SharedContainer(directory: folder.path + "/" + name)
      return MessageVersion.ChannelIdentity(container.storage, name: "m")
    }
    (channel, foreign) = (try source("here"), try source("elsewhere"))
    callbacks = CallbackQueue(queue, for: "a listener")
    listener = MessageListener("m", Self.hearer("first", heard))
  }

  private static func hearer(_ name: String, _ heard: Heard<String>) -> MessageListener.Hearer {
    MessageListener.Hearer { heard.add("\(name) \($0.map { "\($0)" } ?? "nil")") }
  }

  private func version(
    _ number: Int, of channel: MessageVersion.ChannelIdentity? = nil
  ) -> MessageVersion {
    MessageVersion(source: channel ?? self.channel, number: number)
  }

  private func find(
    _ number: Int?, _ text: String, on callbacks: CallbackQueue? = nil,
    of channel: MessageVersion.ChannelIdentity? = nil
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
    let (container, directory) = (channel.container, channel.directory)
    let others: [MessageVersion.ChannelIdentity] = [
      .init(container: foreign.container, directory: directory, name: "m"),
      .init(container: container, directory: foreign.directory, name: "m"),
      .init(container: container, directory: directory, name: "other"),
    ]
    for other in others {
      let received = heard.count
      find(9, "9")
      queue.sync {}
      find(1, "1", of: other)
      queue.sync {}
      find(8, "8")
      find(1, "1", of: other)
      queue.sync {}
      #expect(heard.all.dropFirst(received).last == "first 1")
    }
    #expect(heard.all == ["first 9", "first 1", "first 1", "first 1"])
  }

  @Test func aForgottenMessageIsOneOfItsChannel() {
    #expect(
      whileBusy {
        find(4, "4")
        listener.forget(upTo: version(9, of: foreign))
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

  /// The container is removed before each of the system calls with which a listener continues.
  @Test func aListenerThatContinuesMakesNoNextContainer() throws {
    try GroupsRoot.use()
    let group = "group.test.\(UUID().uuidString)"
    let wormhole = MMWormhole(applicationGroupIdentifier: group)
    wormhole.failureHandler = { _ in }
    var (number, isReached) = (0, true)
    while isReached {
      number += 1
      wormhole.passMessageObject("one" as NSString, identifier: "m")
      let directory = try SharedContainer(group: group).directory
      let listener = MessageListener("m", Self.hearer("next", heard))
      let (pause, isOver) = (FaultPause(), Monitor(false))
      let removing = try remover(of: directory, at: pause, unless: isOver)
      FaultPoints.with([FaultRule(nil, path: group, number: number, .pause(pause))]) {
        _ = wormhole.continueListening(listener)
      }
      listener.stop()
      isOver.signal { $0 = true }
      removing.join()
      isReached = pause.isReached
      #expect(FileManager.default.fileExists(atPath: directory) != isReached, "call \(number)")
    }
    #expect(number > 2)
  }
}
