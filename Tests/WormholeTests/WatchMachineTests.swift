import Foundation
import WormholeContainerStorage
import TestSupport
import TestTraits
import Testing

@testable import Wormhole

/// The watcher's state machine by itself.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct WatchMachineTests {
  private func version(_ number: Int) -> Stamp {
    .version(number, .distantPast, recovered: false)
  }

  /// The name of an action, as text.
  private func word(_ action: WatchMachine<Int>.Action) -> String {
    switch action {
    case .none: "none"
    case .look: "look"
    case .end(let waiter): "end \(waiter)"
    }
  }

  @Test func oneLookForManyChanges() {
    var machine = WatchMachine<Int>(hasHandler: true)
    #expect(word(machine.change("a")) == "look")
    #expect(word(machine.change("a")) == "none")
    #expect(machine.nextName() == "a")
    #expect(machine.isNews("a", version(1)) == true)
    // The channel changes while the handler runs: one more look follows.
    #expect(word(machine.change("a")) == "none")
    #expect(word(machine.change("a")) == "none")
    #expect(word(machine.endLook()) == "look")
    #expect(machine.nextName() == "a")
    #expect(machine.isNews("a", version(1)) == false)
    #expect(machine.nextName() == nil)
    #expect(word(machine.endLook()) == "none")
  }

  @Test func withoutAHandlerItLooksWhenSomebodyWaits() {
    var machine = WatchMachine<Int>(hasHandler: false)
    #expect(word(machine.change("a")) == "none")
    #expect(word(machine.wait(7)) == "look")
    #expect(machine.nextName() == "a")
    #expect(machine.isNews("a", version(1)) == true)
    #expect(machine.takeWaiter() == 7)
    #expect(word(machine.endLook()) == "none")
    #expect(word(machine.wait(8)) == "none")
    #expect(word(machine.change("b")) == "look")
  }

  @Test func whatIsKnownIsNoNewsAndNothingNeverIs() {
    var machine = WatchMachine<Int>(hasHandler: true, seen: ["a": version(1)])
    #expect(machine.isNews("a", version(1)) == false)
    #expect(machine.isNews("b", version(1)) == true)
    #expect(machine.isNews("b", .nothing) == false)
    #expect(machine.isNews("b", version(1)) == true, "it is there again")
  }

  /// If the name is removed next, only the version shows that there was something to remove.
  @Test func aFailedReadingKeepsTheKnownVersion() {
    var machine = WatchMachine<Int>(hasHandler: true, seen: ["b": version(2)])
    let failure = WormholeError(.exhausted, "read channel", "a", because: "no descriptor is left")
    #expect(machine.isNews("a", version(1)) == true)
    for name in ["a", "b"] { #expect(machine.isNews(name, .failed(failure)) == true) }
    #expect(machine.version(of: "a") == 1)
    #expect(machine.version(of: "b") == 2)
    #expect(machine.isNews("a", .nothing) == false)
    #expect(machine.version(of: "a") == nil)
    #expect(machine.isNews("b", .expired(3, .distantPast)) == true)
    #expect(machine.version(of: "b") == 3)
  }

  /// A notice that arrived before the source was left is no reason to keep the stamp.
  @Test func aForgottenNameIsUnknownEvenIfItHasChanged() {
    var machine = WatchMachine<Int>(hasHandler: true, seen: ["a": version(1), "b": version(1)])
    for name in ["a", "b"] { _ = machine.change(name) }
    machine.forget("a")
    machine.forgetUnknown("b")
    #expect(machine.nextName() == "a")
    #expect(machine.nextName() == "b")
    #expect(machine.nextName() == nil)
    #expect(machine.version(of: "a") == nil)
    #expect(machine.isNews("a", version(1)) == true)
    #expect(machine.isNews("b", version(1)) == false, "its stamp is known")
  }

  @Test func stoppedItDoesNothingMore() {
    var machine = WatchMachine<Int>(hasHandler: false)
    _ = machine.wait(7)
    #expect(word(machine.stop()) == "end 7")
    #expect(word(machine.stop()) == "none")
    #expect(word(machine.change("a")) == "none")
    #expect(word(machine.wait(8)) == "end 8")
    #expect(machine.isNews("a", version(1)) == false)
    #expect(word(machine.endLook()) == "none")
  }

  /// In any order of events: until the machine is stopped, every change is followed by a look.
  @Test(arguments: 0..<200) func nothingIsForgotten(_ seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var machine = WatchMachine<Int>(hasHandler: Bool.random(using: &random))
    var owed: Set<String> = []
    var isLooking = false
    var isWaiting = false
    func note(_ action: WatchMachine<Int>.Action) {
      if case .look = action {
        #expect(!isLooking, "one look at a time")
        isLooking = true
      }
    }
    for step in 0..<200 {
      switch Int.random(in: 0..<3, using: &random) {
      case 0:
        let name = ["a", "b", "c"].randomElement(using: &random)!
        owed.insert(name)
        note(machine.change(name))
      case 1 where !machine.hasHandler && !isWaiting:
        isWaiting = true
        note(machine.wait(step))
      default:
        guard isLooking else { continue }
        if let name = machine.nextName() {
          owed.remove(name)
          if machine.isNews(name, version(step + 1)), machine.takeWaiter() != nil {
            isWaiting = false
          }
        }
        isLooking = false
        note(machine.endLook())
      }
      #expect(isLooking || owed.isEmpty || (!machine.hasHandler && !isWaiting))
    }
  }
}
