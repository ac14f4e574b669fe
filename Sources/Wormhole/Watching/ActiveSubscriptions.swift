package import WormholeContainerStorage
internal import WormholeSyscalls

/// An activity with an explicit end, such as a watch.
package protocol Stoppable: AnyObject, Sendable {
  /// Ends the activity; once this has returned, no further closure is called.
  func stop()

  /// Ends the activity, and does not wait for a call in progress.
  func end()

  /// Whether this subscription ends before the rest: a member's receivers complete claimed messages
  /// first.
  var endsFirst: Bool { get }

  /// The gate for its calls, if a call in progress does not retain the object.
  var callGate: CallGate? { get }

  /// The tasks of its asynchronous calls, if it has any.
  var callTasks: CallTasks? { get }
}

extension Stoppable {
  package func end() { stop() }
  package var endsFirst: Bool { false }
  package var callGate: CallGate? { nil }
  package var callTasks: CallTasks? { nil }
}

/// The subscriptions that were started through an instance of a container, or by a member.
///
/// Each subscription continues until its stop, even if the program has released it.
///
/// Each subscription is retained here, and retains this object. So the program need not retain the
/// instance.
package final class ActiveSubscriptions: Sendable {
  private struct State {
    /// Nil until the first subscription, which a program without watches never needs: setting up a
    /// dictionary takes longer than reading a file.
    var all: [ObjectIdentifier: Subscription]?
    var isClosed = false
  }

  private let storage: String
  private let state = Monitor(State())
  private let owner = ProcessCopy.current

  init(_ storage: String) { self.storage = storage }

  /// Retains a subscription until it is removed or the owner closes.
  ///
  /// - Returns: nil if the owner was closed before.
  func keepIfOpen(_ one: any Stoppable) -> Subscription? {
    let subscription = Subscription(one, in: self)
    return state.withLock { state in
      guard !state.isClosed else { return nil }
      state.all = state.all ?? [:]
      state.all?[ObjectIdentifier(one)] = subscription
      return subscription
    }
  }

  /// Retains a subscription until it is removed or the owner closes.
  @discardableResult
  func keep(_ one: any Stoppable) throws(WormholeError) -> Subscription {
    if let subscription = keepIfOpen(one) { return subscription }
    throw WormholeError(
      .cancelled, "start an operation in", storage,
      because: "this instance of the container was closed",
      hint: "open the container again")
  }

  /// Removes a subscription that has ended, in order or for a reason.
  func forget(_ one: any Stoppable, _ reason: WormholeError? = nil) {
    // Released after the lock.
    let subscription = state.withLock { $0.all?.removeValue(forKey: ObjectIdentifier(one)) }
    subscription?.end(reason)
  }

  /// The number of active subscriptions.
  package var count: Int { state.withLock { $0.all?.count ?? 0 } }

  /// Ends all subscriptions, and accepts no more.
  package func close() {
    let all = takeAll()
    for endsFirst in [true, false] {
      for subscription in all where (subscription.one?.endsFirst ?? false) == endsFirst {
        stop(subscription)
      }
    }
  }

  private func stop(_ subscription: Subscription) {
    subscription.one?.stop()
    subscription.end(nil)
  }

  /// Ends all subscriptions, accepts no more, and does not wait for calls in progress.
  ///
  /// - Returns: a closure that waits for all calls.
  func end(_ reason: WormholeError?) -> @Sendable () -> Void {
    let all = takeAll()
    for subscription in all {
      subscription.one?.end()
      subscription.end(reason)
    }
    return { for subscription in all { subscription.stop() } }
  }

  private func takeAll() -> [Subscription] {
    // In a forked child all subscriptions have ended already.
    guard owner.isCurrent else { return [] }
    return state.withLock { state in
      state.isClosed = true
      return Array((state.all.take() ?? [:]).values)
    }
  }
}
