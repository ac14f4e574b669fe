internal import Syscalls

/// Sees to it that each change of an object's settings is told, and its own before their calls
/// return.
///
/// A change may be found by the watch before the call that has made it returns. So while calls are
/// under way the watch tells nothing: each call tells of its own, and the last of them of what
/// others have changed meanwhile.
final class OwnChanges: Sendable {
  private struct State {
    /// How many calls are under way.
    var underWay = 0
    /// All up to this version has been told.
    var told = 0
    /// The last version that the watch has found.
    var found = 0
  }

  private let state = Monitor(State())

  /// A call begins that may change something.
  func begin() { state.withLock { $0.underWay += 1 } }

  /// It ends.
  ///
  /// - Parameter version: the one that it has made; nil if it has changed nothing.
  /// - Returns: whether there is something to tell now.
  func end(with version: Int?) -> Bool {
    state.withLock { state in
      state.underWay -= 1
      if let version { state.told = max(state.told, version) }
      guard state.underWay == 0, state.found > state.told else { return version != nil }
      state.told = state.found
      return true
    }
  }

  /// The watch has found a version.
  ///
  /// - Returns: whether to tell of it now.
  func isNews(_ version: Int) -> Bool {
    state.withLock { state in
      state.found = max(state.found, version)
      guard state.underWay == 0, state.found > state.told else { return false }
      state.told = state.found
      return true
    }
  }
}
