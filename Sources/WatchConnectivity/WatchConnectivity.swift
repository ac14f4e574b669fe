@_exported public import AppGroups
public import Dispatch
@_exported public import WormholePairings

// Code that was written for devices stores observers in dictionaries whose keys are queues.
extension DispatchQueue: @retroactive Equatable {
  /// Whether both values are the same queue.
  public static func == (left: DispatchQueue, right: DispatchQueue) -> Bool { left === right }
}

extension DispatchQueue: @retroactive Hashable {
  /// Feeds the identity of the queue into a hasher.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
