// The public types of the lower modules: the error, the values, and the few types in signatures.
// The rest of the lower modules is for the package alone.
@_exported public import PropertyLists
@_exported public import SharedContainer

/// The same types by a qualified name, for programs with other types of the same names: the class
/// with the module's name hides the module's top-level names.
extension Wormhole {
  /// The error of all calls.
  public typealias WormholeError = SharedContainer.WormholeError
  /// A value of unknown structure.
  public typealias PropertyListValue = PropertyLists.PropertyListValue
  /// The failures that a change survives.
  public typealias Durability = SharedContainer.Durability
  /// The users that may use a container.
  public typealias Sharing = SharedContainer.Sharing
  /// Identifies a join of a member.
  public typealias Incarnation = SharedContainer.Incarnation
  /// The severity of a log entry.
  public typealias LogLevel = SharedContainer.LogLevel
  /// An internal event, for the log.
  public typealias LogEntry = SharedContainer.LogEntry
  /// The closure that receives log entries.
  public typealias LogHook = SharedContainer.LogHook
}
