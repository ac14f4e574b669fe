internal import WormholeSyscalls

/// A property of a class whose changes can be observed.
///
/// As with Combine, observers are notified *before* the property gets its new value, on the thread
/// that sets the property. Each observer first receives the current value.
@propertyWrapper
public struct Published<Value> {
  let storage: Storage

  /// Creates the property, with its first value.
  public init(wrappedValue: Value) { storage = Storage(wrappedValue) }

  /// Creates the property, with its first value.
  public init(initialValue: Value) { storage = Storage(initialValue) }

  /// Properties of classes are accessed through their object, which is notified of each change.
  @available(*, unavailable, message: "@Published is for properties of classes")
  public var wrappedValue: Value {
    get { fatalError("unreachable: the compiler refuses it") }
    nonmutating set { fatalError("unreachable: the compiler refuses \(newValue)") }
  }

  /// The publisher of the property's values.
  public var projectedValue: Publisher { Publisher(storage: storage) }

  /// The property as its object accesses it.
  public static subscript<Owner: AnyObject>(
    _enclosingInstance owner: Owner,
    wrapped path: ReferenceWritableKeyPath<Owner, Value>,
    storage own: ReferenceWritableKeyPath<Owner, Published<Value>>
  ) -> Value {
    get { owner[keyPath: own].storage.value }
    set { owner[keyPath: own].storage.set(newValue) }
  }

  /// A publisher of the property's value, and then of each new value before the property gets it.
  public struct Publisher: WormholeDropIns.Publisher {
    /// The publisher never fails.
    public typealias Failure = Never
    /// The type of the property.
    public typealias Output = Value

    let storage: Storage

    /// Calls a closure with each value, the current value first.
    public func sink(receiveValue: @escaping (Value) -> Void) -> AnyCancellable {
      storage.observe(receiveValue)
    }
  }

  /// The value and its observers.
  final class Storage: PublishedStorage, @unchecked Sendable {
    // The state is accessed only under the monitor. Observers are called outside the monitor, on
    // the thread that sets the property, for which the program is responsible, as with Combine.
    private let state: Monitor<State>

    private struct State {
      var value: Value
      var next = 0
      var observers: [Int: Observer] = [:]
      var objectWillChange: ObservableObjectPublisher?
    }

    private struct Observer {
      let call: (Value) -> Void
      /// Closed by the end of the observation: another observer may cause the end during a change.
      let gate: Gate
    }

    init(_ value: Value) { state = Monitor(State(value: UncheckedBox(value).value)) }

    var value: Value { state.withLock { UncheckedBox($0.value) }.value }

    func set(_ value: Value) {
      let new = UncheckedBox(value)
      let told = state.withLock { state in
        UncheckedBox(
          (object: state.objectWillChange, observers: state.observers.sorted { $0.0 < $1.0 }))
      }.value
      told.object?.send()
      for (_, observer) in told.observers where observer.gate.isOpen { observer.call(value) }
      // The previous value is released without holding the lock, because its end may use the
      // property.
      state.withLock { swap(&$0.value, &new.value) }
    }

    func observe(_ observer: @escaping (Value) -> Void) -> AnyCancellable {
      let gate = Gate()
      let observer = UncheckedBox(Observer(call: observer, gate: gate))
      let (number, present) = state.withLock { state in
        state.next += 1
        state.observers[state.next] = observer.value
        return (state.next, UncheckedBox(state.value))
      }
      observer.value.call(present.value)
      return AnyCancellable { [weak self] in
        gate.close()
        let gone = self?.state.withLock { UncheckedBox($0.observers.removeValue(forKey: number)) }
        _ = gone
      }
    }

    var objectWillChange: ObservableObjectPublisher? {
      get { state.withLock { $0.objectWillChange } }
      set { state.withLock { $0.objectWillChange = newValue } }
    }
  }
}

/// A published property's storage, for any type of value.
protocol PublishedStorage: AnyObject {
  var objectWillChange: ObservableObjectPublisher? { get set }
}

/// Access to the storage of an object's property.
protocol PublishedProperty {
  var anyStorage: any PublishedStorage { get }
}

extension Published: PublishedProperty {
  var anyStorage: any PublishedStorage { storage }
}

// The storage may be shared between threads if the value may.
extension Published: @unchecked Sendable where Value: Sendable {}
