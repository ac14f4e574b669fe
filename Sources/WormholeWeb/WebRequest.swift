/// A complete request of a browser, or of another client.
package struct WebRequest: Sendable, Equatable {
  package enum Method: String, Sendable { case get = "GET", post = "POST" }

  package let method: Method
  /// The path without its query, as it was sent: `/` and visible ASCII.
  package let path: String
  /// The header fields, their names in small letters, in the order in which they were sent.
  package let headers: [Header]
  package let body: [UInt8]
  /// Whether the connection takes another request after the reply.
  package let staysOpen: Bool

  package struct Header: Sendable, Equatable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }
  }

  package init(
    _ method: Method, _ path: String, _ headers: [Header], _ body: [UInt8] = [],
    staysOpen: Bool = true
  ) {
    self.method = method
    self.path = path
    self.headers = headers
    self.body = body
    self.staysOpen = staysOpen
  }

  /// Returns the value of a field; nil without the field, and if the field was sent twice.
  package func header(_ name: String) -> String? {
    let found = headers.filter { $0.name == name }
    return found.count == 1 ? found[0].value : nil
  }

  package func has(_ name: String) -> Bool { headers.contains { $0.name == name } }
}

/// The reason why a request is not served, with the status of the reply.
package struct WebRefusal: Error, Equatable {
  package let status: Int
  /// One sentence, without a full stop.
  package let reason: String

  package init(_ status: Int, _ reason: String) {
    self.status = status
    self.reason = reason
  }
}

/// The bounds on everything that a client can make the server store or wait for.
package struct WebLimits: Sendable {
  /// The bytes of the first line and of all header fields together.
  package var head = 8 << 10
  package var fields = 64
  package var body = 64 << 10
  /// The connections that receive events.
  package var streams = 200
  /// All connections; beyond, the one that has waited longest for its request is closed.
  package var connections = 264
  /// How long a request may take to arrive.
  package var arrival = Duration.seconds(10)
  /// How long a connection may be idle, or take no byte of a reply.
  package var silence = Duration.seconds(30)
  /// After how long without an event a stream gets a comment, which reveals a lost client.
  package var heartbeat = Duration.seconds(15)

  package init() {}
}
