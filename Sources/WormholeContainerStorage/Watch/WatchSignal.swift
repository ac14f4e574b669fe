/// A signal to a listener.
package enum WatchSignal: Sendable, Equatable {
  /// The names in the directory that have changed; only names in UTF-8.
  case changed([String])
  /// Any name may have changed.
  case lookAgain
  /// Another directory has the name now, or a missing name has a directory again; for listeners
  /// of a name.
  case replaced
  /// The directory is gone. The last signal, except for listeners of a name.
  case gone

  /// The limit of names for a listener that does not read: as many as the kernel keeps itself.
  package static let most = 1 << 14

  /// Merges a later signal, for a listener that has not yet read.
  package mutating func add(_ later: WatchSignal) {
    switch (self, later) {
    case (.changed(var names), .changed(let others)) where names.count + others.count <= Self.most:
      self = .changed([])  // Or the names would be copied.
      names += others
      self = .changed(names)
    case (.replaced, .changed): break
    case (.changed, .replaced), (.replaced, .replaced): self = .replaced
    default: self = .lookAgain
    }
  }
}
