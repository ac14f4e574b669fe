internal import WormholeContainerStorage

/// The kind and the headers of an outgoing request or immediate message.
package struct OutgoingLabel: Sendable {
  let kind: String
  let headers: SenderHeaders?

  /// Throws if the kind or the headers are not permitted in sending.
  ///
  /// - Parameter kind: nil for the name of the value's type.
  package init<Value>(
    _ kind: String?, _ headers: [String: String], of type: Value.Type,
    _ operation: @autoclosure () -> String, _ peer: @autoclosure () -> String
  ) throws(WormholeError) {
    self.kind = try MessageKind.checked(kind, of: type, operation(), peer())
    self.headers = try SenderHeaders(headers, operation(), peer())
  }
}
