internal import WormholeSyscalls

/// Ensures that each change of an object's settings is reported, and the object's own changes
/// before their calls return.
///
/// The watch may find a change before the call that made the change returns. Therefore the watch
/// reports nothing while calls are in progress: each call reports its own change, and the last call
/// also reports the changes that other programs have made in the meantime.
final class OwnChanges: Sendable {
  private struct State {
    /// The number of calls in progress.
    var underWay = 0
    /// The highest version that has been reported, together with all versions below.
    var told = 0
    /// The last version that the watch has found.
    var found = 0
  }

  private let state = Monitor(State())

  /// Records the start of a call that may change the settings.
  func begin() { state.withLock { $0.underWay += 1 } }

  /// Records the end of a call.
  ///
  /// - Parameter version: the version that the call has made; nil if the call has changed nothing.
  /// - Returns: whether the caller must report a change now.
  func end(with version: Int?) -> Bool {
    state.withLock { state in
      state.underWay -= 1
      if let version { state.told = max(state.told, version) }
      guard state.underWay == 0, state.found > state.told else { return version != nil }
      state.told = state.found
      return true
    }
  }

  /// Records a version that the watch has found.
  ///
  /// - Returns: whether the watch must report the change now.
  func isNews(_ version: Int) -> Bool {
    state.withLock { state in
      state.found = max(state.found, version)
      guard state.underWay == 0, state.found > state.told else { return false }
      state.told = state.found
      return true
    }
  }
}
