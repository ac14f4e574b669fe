package import SharedContainer
internal import Syscalls

/// Something that goes on until it is stopped.
package protocol Lasting: AnyObject, Sendable {
  /// Ends it; once this has returned, nothing more is called.
  func stop()

  /// Ends it, and does not wait for a call that is under way.
  func end()

  /// What its calls go through, where a call under way does not keep this.
  var callGate: CallGate? { get }
}

extension Lasting {
  package func end() { stop() }
  package var callGate: CallGate? { nil }
}

/// What was begun through an opening of a container, or by a member, and goes on until it is
/// stopped, whoever has let go of it.
///
/// What goes on is kept here, and keeps this; so it needs no opening that somebody keeps.
package final class Begun: Sendable {
  private struct State {
    /// Nil until something begins, which programs that only look never see: setting a dictionary up
    /// takes longer than reading a file.
    var all: [ObjectIdentifier: Wormhole.Subscription]?
    var isClosed = false
  }

  private let container: String
  private let state = Monitor(State())
  private let owner = ProcessCopy.current

  init(_ container: String) { self.container = container }

  /// Keeps something until it is forgotten or told to end.
  ///
  /// - Returns: nil if this was closed before.
  func keepIfOpen(_ one: any Lasting) -> Wormhole.Subscription? {
    let subscription = Wormhole.Subscription(one, in: self)
    return state.withLock { state in
      guard !state.isClosed else { return nil }
      state.all = state.all ?? [:]
      state.all?[ObjectIdentifier(one)] = subscription
      return subscription
    }
  }

  /// Keeps something until it is forgotten or told to end.
  @discardableResult
  func keep(_ one: any Lasting) throws(WormholeError) -> Wormhole.Subscription {
    if let subscription = keepIfOpen(one) { return subscription }
    throw WormholeError(
      .cancelled, "begin anything in", container, because: "this opening of it was closed",
      hint: "open it anew")
  }

  /// It has ended, in order or for a reason.
  func forget(_ one: any Lasting, _ reason: WormholeError? = nil) {
    // Let go of once the lock is free.
    let subscription = state.withLock { $0.all?.removeValue(forKey: ObjectIdentifier(one)) }
    subscription?.end(reason)
  }

  /// How many go on.
  package var count: Int { state.withLock { $0.all?.count ?? 0 } }

  /// Ends all, and lets nothing more begin.
  package func close() {
    let all = takeAll()
    // Whoever leaves sees to it that what is in the hands of receivers is brought to its end first.
    for subscription in all.filter({ $0.one is Wormhole.Member }) { stop(subscription) }
    for subscription in all.filter({ !($0.one is Wormhole.Member) }) { stop(subscription) }
  }

  private func stop(_ subscription: Wormhole.Subscription) {
    subscription.one?.stop()
    subscription.end(nil)
  }

  /// Ends all, lets nothing more begin, and does not wait for calls that are under way.
  ///
  /// - Returns: what waits for those calls.
  func end(_ reason: WormholeError?) -> @Sendable () -> Void {
    let all = takeAll()
    for subscription in all {
      subscription.one?.end()
      subscription.end(reason)
    }
    return { for subscription in all { subscription.stop() } }
  }

  private func takeAll() -> [Wormhole.Subscription] {
    // In a copy of the process all has ended already.
    guard owner.isCurrent else { return [] }
    return state.withLock { state in
      state.isClosed = true
      return Array((state.all.take() ?? [:]).values)
    }
  }
}
