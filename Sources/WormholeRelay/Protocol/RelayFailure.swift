/// The reason why a connection, a request or a publish failed.
package struct RelayFailure: Error, Equatable, Sendable, CustomStringConvertible {
  package enum Kind: Sendable, Equatable {
    /// The address is not one of this host's loopback interface.
    case address
    /// No server listens there.
    case unreachable
    /// The server refuses the token, or the whole connection.
    case refused
    /// The server is too old, or lacks a domain, headers, or the demand for a token.
    case unsuitable
    /// The connection has ended.
    case closed
    /// No reply arrived in time; the request may have been carried out.
    case timedOut
    /// No program, and no stream, listens on the subject.
    case noResponders
    /// The rights of this connection do not include the subject.
    case notPermitted(subject: String)
    /// JetStream replied with an error.
    case jetStream(code: Int, errorCode: Int)
    /// The bytes do not follow the protocol, or a subject or header would not.
    case malformed
    /// The message exceeds the server's limit, or too much waits to be sent.
    case tooLarge
  }

  package let kind: Kind
  package let reason: String

  package init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  package var description: String { reason }

  /// The number that decides in JetStream's errors; nil for all other failures.
  package var errorCode: Int? {
    if case .jetStream(_, let code) = kind { code } else { nil }
  }
}

/// The numbers of JetStream's errors on which callers decide.
package enum JetStreamError {
  package static let wrongLastSequence: Set<Int> = [10071, 10164]
  package static let noStream = 10059
  package static let streamExists = 10058
  package static let full: Set<Int> = [10077, 10023]
  package static let notNow = 10008
  /// Too few servers of the cluster have met for the replicas of a stream.
  package static let noPeers = 10005
}
