internal import Syscalls

/// A property of a class whose changes can be observed.
///
/// As with Combine, observers are told *before* the property has its new value, on the thread that
/// sets it, and first of all of the value that is there.
@propertyWrapper
public struct Published<Value> {
  let storage: Storage

  /// Makes the property, with its first value.
  public init(wrappedValue: Value) { storage = Storage(wrappedValue) }

  /// Makes the property, with its first value.
  public init(initialValue: Value) { storage = Storage(initialValue) }

  /// Properties of classes are reached by way of their object, which is told of each change.
  @available(*, unavailable, message: "@Published is for properties of classes")
  public var wrappedValue: Value {
    get { fatalError("unreachable: the compiler refuses it") }
    nonmutating set { fatalError("unreachable: the compiler refuses \(newValue)") }
  }

  /// What the property can be observed by.
  public var projectedValue: Publisher { Publisher(storage: storage) }

  /// The property as its object has it.
  public static subscript<Owner: AnyObject>(
    _enclosingInstance owner: Owner,
    wrapped path: ReferenceWritableKeyPath<Owner, Value>,
    storage own: ReferenceWritableKeyPath<Owner, Published<Value>>
  ) -> Value {
    get { owner[keyPath: own].storage.value }
    set { owner[keyPath: own].storage.set(newValue) }
  }

  /// Publishes the property's value, and then each that it is about to have.
  public struct Publisher: DropIns.Publisher {
    /// Nothing fails.
    public typealias Failure = Never
    /// What the property holds.
    public typealias Output = Value

    let storage: Storage

    /// Calls a closure with each value, the present one first.
    public func sink(receiveValue: @escaping (Value) -> Void) -> AnyCancellable {
      storage.observe(receiveValue)
    }
  }

  /// The value, and who observes it.
  final class Storage: PublishedStorage, @unchecked Sendable {
    // Reached only under the monitor, apart from the calls of observers, which the program makes
    // from whatever thread sets the property, as with Combine.
    private let state: Monitor<State>

    private struct State {
      var value: Value
      var next = 0
      var observers: [Int: (Value) -> Void] = [:]
      var objectWillChange: ObservableObjectPublisher?
    }

    init(_ value: Value) { state = Monitor(State(value: Unguarded(value).value)) }

    var value: Value { state.withLock { Unguarded($0.value) }.value }

    func set(_ value: Value) {
      let new = Unguarded(value)
      let told = state.withLock { state in
        Unguarded(
          (object: state.objectWillChange, observers: state.observers.sorted { $0.0 < $1.0 }))
      }.value
      told.object?.send()
      for (_, observer) in told.observers { observer(value) }
      state.withLock { $0.value = new.value }
    }

    func observe(_ observer: @escaping (Value) -> Void) -> AnyCancellable {
      let observer = Unguarded(observer)
      let (number, present) = state.withLock { state in
        state.next += 1
        state.observers[state.next] = observer.value
        return (state.next, Unguarded(state.value))
      }
      observer.value(present.value)
      return AnyCancellable { [weak self] in
        let gone = self?.state.withLock { Unguarded($0.observers.removeValue(forKey: number)) }
        _ = gone
      }
    }

    var objectWillChange: ObservableObjectPublisher? {
      get { state.withLock { $0.objectWillChange } }
      set { state.withLock { $0.objectWillChange = newValue } }
    }
  }
}

/// A published property's storage, of whatever type its value is.
protocol PublishedStorage: AnyObject {
  var objectWillChange: ObservableObjectPublisher? { get set }
}

/// Finds the storage of an object's properties.
protocol PublishedProperty {
  var anyStorage: any PublishedStorage { get }
}

extension Published: PublishedProperty {
  var anyStorage: any PublishedStorage { storage }
}

// The storage may be shared as its value may.
extension Published: @unchecked Sendable where Value: Sendable {}
