/// What receivers choose messages by, without having claimed them.
package struct MessageLabel: Hashable, Sendable {
  /// What the sender called it.
  let kind: String
  /// Whether a file comes with it.
  var hasFile = false
}

extension MessageLabel: ExpressibleByStringLiteral {
  package init(stringLiteral kind: String) { self.init(kind: kind) }
}

extension MessageFile.Header {
  var label: MessageLabel { MessageLabel(kind: kind, hasFile: file != nil) }
}
