import Foundation
import TestSupport
import TestTraits
import Testing
import WatchConnectivity

/// Observing properties of a session by their key paths.
@Suite struct SessionObservingTests {
  @Test(.blocking) func reachabilityIsObserved() throws {
    let sides = try TwoSides()
    let (heard, states, first) = (Heard<String>(), Heard<Int>(), Heard<Bool>())
    let observation = sides.phone.observe(\.isReachable, options: [.old, .new]) { session, change in
      heard.add("\(change.oldValue.map { "\($0)" } ?? "-") \(change.newValue ?? false)")
    }
    let activation = sides.phone.observe(\.activationState, options: .new) { _, change in
      states.add(change.newValue?.rawValue ?? -1)
    }
    let initial = sides.phone.observe(\.isReachable, options: [.initial, .new]) { _, change in
      first.add(change.newValue ?? true)
    }
    #expect(first.all == [false], "the first call is made at once")
    try sides.activate()
    try states.wait("the activation") { $0 == [2] }
    try heard.wait("the watch") { $0 == ["false true"] }
    // Each observer reads the property itself, and may not see a state that has passed.
    try first.wait("the watch, by the witness") { $0 == [false, true] }
    try sides.pairing.setInRange(false)
    try heard.wait("the distance") { $0 == ["false true", "true false"] }
    try first.wait("the distance, by the witness") { $0 == [false, true, false] }
    observation.invalidate()
    try sides.pairing.setInRange(true)
    try first.wait("the witness") { $0 == [false, true, false, true] }
    #expect(heard.count == 2)
    activation.invalidate()
    initial.invalidate()
  }

  /// A change during the first call is reported after the first call has returned.
  @Test(.blocking) func noCallPrecedesTheEndOfTheFirst() throws {
    let sides = try TwoSides()
    try sides.activate()
    let (heard, witness) = (Heard<String>(), Heard<Bool>())
    let observation = sides.phone.observe(\.isReachable, options: [.initial, .new]) {
      session, change in
      let value = change.newValue ?? false
      guard heard.count == 0 else { return heard.add("then \(value)") }
      heard.add("first \(value)")
      // An observer is called after those that were added before it.
      let other = session.observe(\.isReachable, options: .new) { _, change in
        witness.add(change.newValue ?? true)
      }
      do {
        try sides.pairing.setInRange(false)
        try witness.wait("the distance, by the witness") { $0 == [false] }
      } catch {
        heard.add("\(error)")
      }
      other.invalidate()
      heard.add("end of the first")
    }
    try heard.wait("the distance") { $0.count == 3 }
    #expect(heard.all == ["first true", "end of the first", "then false"])
    observation.invalidate()
  }

  /// As with key-value observing, the token is the observation.
  @Test(.blocking) func aReleasedTokenEndsTheObservation() throws {
    let sides = try TwoSides()
    let (heard, witness) = (Heard<Int>(), Heard<Int>())
    var token: NSKeyValueObservation? = sides.phone.observe(\.isReachable) { _, _ in heard.add(1) }
    #expect(token != nil)
    token = nil
    let other = sides.phone.observe(\.isReachable) { _, change in
      witness.add(change.newValue == nil && change.oldValue == nil ? 1 : 2)
    }
    try sides.activate()
    try witness.wait("the witness") { $0 == [1] }
    #expect(heard.all == [])
    other.invalidate()
  }

  @MainActor @Test func aHandlerOfTheMainActorRunsThere() async throws {
    let sides = try TwoSides()
    let label = Label()
    let token = sides.phone.observe(\.activationState, options: .new) { _, change in
      label.show(change.newValue)
    }
    sides.phone.delegate = sides.phoneSide
    sides.phone.activate()
    while label.text.isEmpty { await Task.yield() }
    #expect(label.text == "2")
    token.invalidate()
  }

  @MainActor private final class Label {
    private(set) var text = ""
    func show(_ state: WCSessionActivationState?) {
      MainActor.assertIsolated()
      text = "\(state?.rawValue ?? -1)"
    }
  }
}
