internal import Dispatch
public import Foundation
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholeDropIns
internal import WormholeSyscalls

/// The values that an observer of a property receives.
public struct NSKeyValueObservingOptions: OptionSet, Sendable {
  /// The bits of the options.
  public let rawValue: UInt
  /// Creates options from their bits.
  public init(rawValue: UInt) { self.rawValue = rawValue }
  /// The change has the new value.
  public static let new = Self(rawValue: 1 << 0)
  /// The change has the previous value.
  public static let old = Self(rawValue: 1 << 1)
  /// The first call has the present value, before the registration returns.
  public static let initial = Self(rawValue: 1 << 2)
  /// A call before each change; no such call is made here.
  public static let prior = Self(rawValue: 1 << 3)
}

/// The kind of a change.
public enum NSKeyValueChange: UInt, Sendable {
  /// The property was set; the only kind here.
  case setting = 1
  /// Objects were inserted into a collection.
  case insertion = 2
  /// Objects were removed from a collection.
  case removal = 3
  /// Objects of a collection were replaced.
  case replacement = 4
}

/// A change of a property.
public struct NSKeyValueObservedChange<Value> {
  /// The kind of a change.
  public typealias Kind = NSKeyValueChange
  /// The kind of this change.
  public let kind: Kind
  /// The new value, with the option `new`.
  public let newValue: Value?
  /// The previous value, with the option `old`.
  public let oldValue: Value?
  /// The changed objects of a collection: always nil.
  public let indexes: IndexSet?
  /// Whether the call precedes the change: never.
  public let isPrior: Bool
}

extension NSKeyValueObservedChange: Sendable where Value: Sendable {}

/// An observation of a property, which ends when it is invalidated or released.
public final class NSKeyValueObservation: NSObject, Sendable {
  private let cancellation: AnyCancellable

  fileprivate init(_ cancellation: AnyCancellable) {
    self.cancellation = cancellation
    super.init()
  }

  deinit { cancellation.cancel() }

  /// Ends the observation; a second call does nothing.
  public func invalidate() { cancellation.cancel() }
}

/// The observers of a session's properties.
///
/// Whenever the session may have changed, a worker has each observer read its property, one after
/// the other, and an observer is called if the value is another one.
final class SessionObservers: Sendable {
  // On no queue of the session: the `work` queue may wait for a callback that waits for an
  // observer, and a handler that blocks its queue must not delay the handlers of actors.
  private let worker = Worker(staysOffWatcher: true)
  private let checks = Monitor((last: 0, checks: [Int: Check]()))

  struct Check: Sendable { let run: @Sendable (WCSession) -> Void }

  func add(_ check: Check) -> AnyCancellable {
    let number = checks.withLock { checks in
      checks.last += 1
      checks.checks[checks.last] = check
      return checks.last
    }
    return AnyCancellable { [weak self] in
      let gone = self?.checks.withLock { $0.checks.removeValue(forKey: number) }
      _ = gone
    }
  }

  func begin(for session: WCSession) {
    worker.begin { [weak self, weak session] in
      guard let self, let session else { return }
      let checks = self.checks.withLock { $0.checks }.sorted { $0.key < $1.key }
      for (_, check) in checks { check.run(session) }
    }
  }

  /// Compares all observed values; returns before.
  func review() {
    guard checks.withLock({ !$0.checks.isEmpty }) else { return }
    worker.trigger()
  }

  /// The queue on which handlers are called that no actor isolates.
  let calls = DispatchQueue(label: "wormhole.watchconnectivity.observers.calls")
}

extension WCSession {
  /// Calls a closure whenever a property of the session has another value, until the returned
  /// object is invalidated or released: `session.observe(\.isReachable) { session, change in … }`.
  ///
  /// For the properties of the activation, of the pairing and of the counterpart's reachability.
  /// Changes in quick succession may lead to a single call, with the latest value.
  ///
  /// - Parameters:
  ///   - keyPath: the property.
  ///   - options: the values that the change contains, and whether a first call is made at once.
  ///   - changeHandler: is called on a queue of the session, or where its isolation requires.
  public func observe<Value: Equatable & Sendable>(
    _ keyPath: KeyPath<WCSession, Value>, options: NSKeyValueObservingOptions = [],
    changeHandler: @escaping @isolated(any) (WCSession, NSKeyValueObservedChange<Value>) -> Void
  ) -> NSKeyValueObservation {
    let (callback, gate) = (Handler(changeHandler), Gate())
    let path = ObservedPath(path: keyPath)
    let present = self[keyPath: keyPath]
    let last = Monitor(present)
    let calls = observers.calls
    // Before the addition, so that no call about a change precedes the first call.
    if options.contains(.initial) {
      callback.call((self, NSKeyValueObservedChange(from: nil, to: present, options)))
    }
    let addition = observers.add(
      SessionObservers.Check { session in
        let new = session[keyPath: path.path]
        let old = last.withLock { exchange(&$0, with: new) }
        guard old != new else { return }
        callback.call(on: calls) {
          gate.isOpen ? (session, NSKeyValueObservedChange(from: old, to: new, options)) : nil
        }
      })
    // A change between the first reading and the addition.
    observers.review()
    return NSKeyValueObservation(
      AnyCancellable {
        gate.close()
        addition.cancel()
      })
  }
}

extension NSKeyValueObservedChange {
  fileprivate init(from old: Value?, to new: Value, _ options: NSKeyValueObservingOptions) {
    (kind, indexes, isPrior) = (.setting, nil, false)
    newValue = options.contains(.new) ? new : nil
    oldValue = options.contains(.old) ? old : nil
  }
}

/// The path of a session's property.
private struct ObservedPath<Value>: @unchecked Sendable {
  // The path names one property of a session and captures nothing.
  let path: KeyPath<WCSession, Value>
}
