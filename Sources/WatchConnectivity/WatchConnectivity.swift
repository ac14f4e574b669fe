@_exported public import AppGroups
public import Dispatch
@_exported public import Pairings

// Code of the originals' kind keeps observers in dictionaries by their queue.
extension DispatchQueue: @retroactive Equatable {
  /// Whether both are the same queue.
  public static func == (left: DispatchQueue, right: DispatchQueue) -> Bool { left === right }
}

extension DispatchQueue: @retroactive Hashable {
  /// Feeds its identity into a hasher.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
