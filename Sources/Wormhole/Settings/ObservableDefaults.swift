internal import Dispatch
public import Observation
public import WormholeContainerStorage
public import WormholePropertyLists

/// The settings of a suite as a model for a user interface, key by key.
///
/// If a key is read inside `withObservationTracking`, the reader is notified when this key
/// changes, in any process, and of no other key. The model is isolated to the main actor; changed
/// files are read on other threads.
@MainActor
public final class ObservableDefaults: Observable {
  /// The settings behind the model.
  public nonisolated let defaults: Defaults
  /// Each cell retains its watch, which ends with the model.
  private var cells: [String: Cell] = [:]

  /// Makes a model of the settings; no key is read before its first use.
  public init(_ defaults: Defaults) { self.defaults = defaults }

  /// The latest known value of a key; nil if the value is missing or cannot be read.
  ///
  /// The first use of a key reads the key and begins to watch it.
  public subscript(key: String) -> PropertyListValue? { cell(key).value }

  /// Sets a key, for all processes; nil removes it.
  ///
  /// The calling thread waits until the value is written. The model shows the value at once. If the
  /// value is written and cannot be read, the log reports the error, and the model shows the value
  /// later.
  public func set<Value: Encodable>(
    _ value: Value?, forKey key: String
  ) throws(WormholeError) {
    try defaults.set(value, forKey: key)
    // An error of the read is not thrown: the value is set.
    if let cell = cells[key] { begin(key, cell) } else { _ = cell(key) }
  }

  private func cell(_ key: String) -> Cell {
    if let cell = cells[key] { return cell }
    let cell = Cell()
    cells[key] = cell
    begin(key, cell)
    return cell
  }

  /// Reads a key and begins to watch it.
  ///
  /// If the system refuses for now, both are tried again, because the reader must be notified of
  /// every change.
  private func begin(_ key: String, _ cell: Cell, again: Bool = false) {
    let log = defaults.container.failureHandler(nil, about: LogSubject(suite: defaults.suite))
    do throws(WormholeError) {
      // The watch begins before the reading: no change in between is missed.
      if cell.watch == nil {
        cell.watch = try defaults.watchingStamped(key, of: PropertyListValue.self, initial: false)
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

/// One key's value: tracked separately, so its readers are not notified of other keys.
@MainActor @Observable
private final class Cell {
  private(set) var value: PropertyListValue?
  @ObservationIgnored var watch: StopOnRelease<Listener>?
  /// The version of the suite from which the value was read here; nil once the watch has reached
  /// it.
  @ObservationIgnored private var shown: Stamp?

  func show(_ found: (stamp: Stamp, value: PropertyListValue?)) {
    shown = found.stamp
    take(found.value)
  }

  /// Takes a value from the watch, which may have waited for this thread and may be outdated.
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
  /// Compares the version and the time: after another tool has removed the file, versions begin at
  /// lower numbers.
  fileprivate func isEarlier(than other: Stamp) -> Bool {
    guard case .version(let own, let sent, _) = self,
      case .version(let others, let otherSent, _) = other
    else { return false }
    return own < others && sent <= otherSent
  }
}
