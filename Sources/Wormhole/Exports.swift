// What users of this module see of the rooms below: the error, the values, and the few types that
// stand in signatures. Everything else there is for the package alone.
@_exported public import PropertyLists
@_exported public import SharedContainer

/// The same types by a qualified name, for programs that have others called so: what is called like
/// this module is the class, and hides what stands beside it.
extension Wormhole {
  /// What calls throw.
  public typealias WormholeError = SharedContainer.WormholeError
  /// A value whose shape is not known.
  public typealias PropertyListValue = PropertyLists.PropertyListValue
  /// What a change survives.
  public typealias Durability = SharedContainer.Durability
  /// Who may use a container.
  public typealias Sharing = SharedContainer.Sharing
  /// Which joining of a member it is.
  public typealias Incarnation = SharedContainer.Incarnation
  /// How much what the log is told matters.
  public typealias LogLevel = SharedContainer.LogLevel
  /// Something that has happened inside.
  public typealias LogEntry = SharedContainer.LogEntry
  /// What is told what happens inside.
  public typealias LogHook = SharedContainer.LogHook
}
