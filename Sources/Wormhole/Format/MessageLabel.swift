/// The properties by which receivers choose messages before the claim.
package struct MessageLabel: Hashable, Sendable {
  /// The kind given by the sender.
  let kind: String
  /// Whether a file comes with the message.
  var hasFile = false
}

extension MessageLabel: ExpressibleByStringLiteral {
  package init(stringLiteral kind: String) { self.init(kind: kind) }
}

extension MessageFile.Header {
  var label: MessageLabel { MessageLabel(kind: kind, hasFile: file != nil) }
}
