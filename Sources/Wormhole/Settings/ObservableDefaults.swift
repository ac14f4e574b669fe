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
    /// With the watches of them, which end with the model.
    private var cells: [String: Cell] = [:]

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
      let cell = cell(key)
      cell.show(try defaults.look(at: key))
    }

    private func cell(_ key: String) -> Cell {
      if let cell = cells[key] { return cell }
      let cell = Cell()
      cells[key] = cell
      begin(key, cell)
      return cell
    }

    /// Reads a key and begins to watch it; tried again where the system refuses that for now, as
    /// who has asked is to be told of every change.
    private func begin(_ key: String, _ cell: Cell, again: Bool = false) {
      let log = defaults.hole.failureHandler(nil, about: LogSubject(suite: defaults.suite))
      do throws(WormholeError) {
        // From before the reading, so that nothing is missed between the two.
        if cell.watch == nil {
          cell.watch = try defaults.watchingStamped(key, of: PropertyListValue.self, present: false)
            .observeBriefly(
              on: .main,
              { [weak cell] found in MainActor.assumeIsolated { cell?.hear(found) } }, log)
        }
        cell.show(try defaults.look(at: key))
      } catch {
        if !again { log(error) }
        guard error.mayPass else { return }
        DispatchQueue.main.soon(after: .seconds(1)) { [weak self] in
          MainActor.assumeIsolated { self?.begin(key, cell, again: true) }
        }
      }
    }
  }
}

/// One key's value: tracked by itself, so that nobody hears of other keys.
@MainActor @Observable
private final class Cell {
  private(set) var value: PropertyListValue?
  @ObservationIgnored var watch: Brief<Listener>?
  /// From which version of the suite the value was read here; nil once the watch has come so far.
  @ObservationIgnored private var shown: Stamp?

  func show(_ found: (stamp: Stamp, value: PropertyListValue?)) {
    shown = found.stamp
    take(found.value)
  }

  /// What the watch tells, which may have waited for this thread, and be older than what is shown.
  func hear(_ found: (stamp: Stamp, value: PropertyListValue?)) {
    if let shown, found.stamp.isEarlier(than: shown) { return }
    shown = nil
    take(found.value)
  }

  private func take(_ value: PropertyListValue?) {
    if self.value != value { self.value = value }
  }
}

extension Stamp {
  /// By both the version and the time: what was taken away by hand begins with lower versions.
  fileprivate func isEarlier(than other: Stamp) -> Bool {
    guard case .version(let own, let sent, _) = self,
      case .version(let others, let otherSent, _) = other
    else { return false }
    return own < others && sent <= otherSent
  }
}
