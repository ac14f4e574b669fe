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

  /// The publisher of the property's values; setting it makes the property follow another one.
  ///
  /// The setter is there for `assign(to: &$property)`.
  public var projectedValue: Publisher {
    get { Publisher(storage: storage) }
    nonmutating set { if newValue.storage !== storage { storage.follow(newValue) } }
  }

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
  public struct Publisher: Combine.Publisher {
    /// The type of the property.
    public typealias Output = Value
    /// The publisher never fails.
    public typealias Failure = Never

    let storage: Storage

    /// Starts a subscription.
    public func subscribe(_ observer: Observer<Value, Never>) { storage.outlets.add(observer) }
  }

  /// The value, its observers, and the publishers that it follows.
  final class Storage: PublishedStorage, @unchecked Sendable {
    // The state is behind locks, under which no observer is called.
    let outlets: Outlets<Value, Never>
    private let state: Guarded<State>

    private struct State {
      var value: Value
      var followed: [AnyCancellable] = []
      var objectWillChange: ObservableObjectPublisher?
    }

    init(_ value: Value) {
      (outlets, state) = (Outlets(value), Guarded(State(value: value)))
    }

    var value: Value { state.withLock { $0.value } }

    func set(_ value: Value) {
      objectWillChange?.send()
      outlets.send(.value(value))
      let old = state.withLock { state in
        defer { state.value = value }
        return state.value
      }
      outlets.keep(value)
      _ = old
    }

    func follow<Other: Combine.Publisher>(
      _ other: Other
    ) where Other.Output == Value, Other.Failure == Never {
      let following = other.sink { [weak self] in self?.set($0) }
      state.withLock { $0.followed.append(following) }
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
// The same holds for its publisher.
extension Published.Publisher: @unchecked Sendable where Value: Sendable {}
