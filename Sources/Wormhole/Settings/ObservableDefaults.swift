internal import Dispatch
public import Observation
public import PropertyLists
public import SharedContainer

extension Wormhole {
  /// The settings of a suite as a model for a user interface, key by key.
  ///
  /// Whoever reads a key inside `withObservationTracking` is told when that key changes, in
  /// whichever process, and of no other. It lives on the main actor; files are read elsewhere.
  @MainActor
  public final class ObservableDefaults: Observable {
    /// The settings behind it.
    public nonisolated let defaults: Defaults
    private var cells: [String: Cell] = [:]
    /// They end with the model.
    private var watches: [Brief<Listener>] = []

    /// Makes a model of the settings; nothing is read before a key is asked for.
    public init(_ defaults: Defaults) { self.defaults = defaults }

    /// The value of a key, as last heard of; nil if there is none, or none that can be read.
    ///
    /// The first question for a key reads it and begins to watch it.
    public subscript(key: String) -> PropertyListValue? { cell(key).value }

    /// Sets a key, for all processes; nil removes it.
    ///
    /// The calling thread waits until it is written. The model shows it at once.
    public func set<Value: Encodable>(
      _ value: Value?, forKey key: String
    ) throws(WormholeError) {
      try defaults.set(value, forKey: key)
      cell(key).value = try defaults.object(forKey: key)
    }

    private func cell(_ key: String) -> Cell {
      if let cell = cells[key] { return cell }
      let cell = Cell()
      cells[key] = cell
      let log = defaults.hole.failureHandler(nil, about: LogSubject(suite: defaults.suite))
      do throws(WormholeError) {
        // From before the reading, so that nothing is missed between the two.
        watches.append(
          try defaults.watching(key, of: PropertyListValue.self, present: false).observeBriefly(
            on: .main,
            { [weak cell] value in
              MainActor.assumeIsolated { if cell?.value != value { cell?.value = value } }
            }, log))
        cell.value = try defaults.object(forKey: key)
      } catch {
        log(error)
      }
      return cell
    }
  }
}

/// One key's value: tracked by itself, so that nobody hears of other keys.
@MainActor @Observable
private final class Cell {
  var value: PropertyListValue?
}
