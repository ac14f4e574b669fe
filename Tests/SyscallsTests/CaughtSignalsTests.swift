import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Signals that a process catches for its services.
@Suite(.blocking, .notSanitized("a copy of a process with threads may hang in its code"))
struct CaughtSignalsTests {
  @Test func aForkedChildAndTheTimeAfterwardsHaveTheDefaultAction() throws {
    let outcome = try run(.catchSignals)
    #expect(outcome.status == .signalled(15), "\(outcome.errors)")
    #expect(outcome.output == "the signal has ended the copy\ncaught: 1\n")
  }

  /// The copy has inherited the handler, but no closure that the signal would call.
  @Test func aForkedChildThatCatchesSignalsHasLostThoseOfItsParent() throws {
    let outcome = try run(.catchInCopies)
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.output == "the signal has ended the copy\nthe signal has ended the copy\n")
  }

  /// The handlers of the refused catch are removed in the end, and the process has not asked for
  /// the signal: the signal has its action.
  ///
  /// In each process the signal arrives at another moment.
  @Test func aSignalThatArrivesWhileACatchIsRefusedIsNotLost() throws {
    for _ in 1...16 {
      let outcome = try run(.refuseSignals)
      #expect(outcome.status == .signalled(15), "\(outcome.output) \(outcome.errors)")
    }
  }

  /// The handler of an ended catch raised the signal, which led to the handler again.
  @Test func aHandlerThatIsPutBackAfterACatchLeavesTheSignalToItsAction() throws {
    let outcome = try run(.handleSignal(isChained: false))
    #expect(outcome.status == .signalled(15), "\(outcome.output) \(outcome.errors)")
  }

  /// The handler is also the earlier action of a second catch, after which it has one signal twice.
  @Test func aHandlerThatCallsTheHandlerOfAnEndedCatchHasNoSignalForEver() throws {
    let outcome = try run(.handleSignal(isChained: true))
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.output == "handled: 1\nhandled: 4\n")
  }

  /// As for a program in the background of a script.
  @Test func aSignalThatTheParentHasIgnoredStaysIgnored() throws {
    let job = PeerJob.catchSignals.arguments.map { "'\($0)'" }.joined(separator: " ")
    let outcome = try run(
      "sh", ["-c", "trap '' TERM; exec \(Programs.built("TestPeer")) \(job)"])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.output == "the copy has ended itself\ncaught: 0\nthe signal is ignored\n")
  }
}
