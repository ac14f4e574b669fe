/// How a program introduces itself to a server, and what the program expects.
package struct RelayOptions {
  package var token: String?
  package var name: String
  /// The beginning of the subjects for replies; at first `_INBOX.` and the name.
  package var inbox: String
  package var pingInterval = Duration.seconds(2)
  package var handshakeTimeout = Duration.seconds(5)
  /// Whether a server that asks for no token is accepted, though every local user can use it.
  package var allowsOpenServer = false
  /// The domain of JetStream, if the server itself states none.
  package var domain: String?

  package init(name: String, token: String? = nil) {
    self.name = name
    self.token = token
    inbox = "_INBOX." + SubjectRules.part(name)
  }
}
