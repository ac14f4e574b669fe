internal import WormholeRelay
internal import WormholeSyscalls

/// Creates the streams of a deployment, once for all machines and groups.
///
/// Bridges do not create streams: the right to do so reaches beyond a machine's own subjects. After
/// a total loss of the servers' data, somebody runs the setup again.
package final class ServerSetup {
  private let settings: Bridge.Settings
  private let connection: RelayConnection
  private let jetStream: JetStream
  private let wake: WakeDescriptor
  private let deadline: Instant
  /// What was done, for people.
  private var report: [String] = []

  private init(_ settings: Bridge.Settings, until deadline: Instant) throws {
    (self.settings, self.deadline) = (settings, deadline)
    var options = RelayConnection.Options(name: "wormhole-setup")
    options.token = settings.token
    options.domain = settings.domain
    options.allowsOpenServer = settings.allowsOpenServer
    connection = try RelayConnection(settings.address, options)
    jetStream = JetStream(connection)
    wake = try WakeDescriptor()
  }

  /// Creates what is missing; returns a line for each stream.
  ///
  /// - Parameter replicas: how many servers have each message: 3, or 1 for a single server.
  package static func run(
    _ settings: Bridge.Settings, _ deployment: Deployment, replicas: Int
  ) throws -> [String] {
    let patienceEnd = settings.patience.map { Instant.now + $0 }
    while true {
      do {
        let setup = try ServerSetup(settings, until: patienceEnd ?? .now + .seconds(30))
        return try setup.run(deployment, replicas)
      } catch let failure as RelayFailure {
        // Servers that have just been started take a moment, and reply to nothing until they have
        // a leader. Each request may be repeated.
        guard let patienceEnd, .now < patienceEnd,
          [.unreachable, .closed, .noResponders, .timedOut].contains(failure.kind)
            || failure.errorCode == JetStreamError.notNow
        else { throw BridgeEnd(failure) }
        try WakeDescriptor().wait(until: .now + .milliseconds(100))
      }
    }
  }

  private func run(_ deployment: Deployment, _ replicas: Int) throws -> [String] {
    defer { connection.close() }
    let streams = deployment.streams(replicas: replicas)
    try create(streams[0])
    let stored = try result { handler in
      self.jetStream.lastMessage(of: Deployment.subject, in: Subjects.recordStream(0)) {
        handler($0)
      }
    }
    if let stored, let found = Deployment(stored.payload), found != deployment {
      throw BridgeEnd(
        .refused,
        "the servers are set up with \(found.flows) streams of flows and \(found.states) of "
          + "records", hint: "use --flows \(found.flows) --states \(found.states)")
    }
    for stream in streams.dropFirst() { try create(stream) }
    if stored == nil {
      _ = try result { handler in
        self.jetStream.publish(
          Deployment.subject, expectedLast: 0, deployment.bytes, within: .seconds(10)
        ) { handler($0) }
      }
    }
    return report
  }

  private func create(_ stream: StreamSettings) throws {
    let info = try result { handler in self.jetStream.createStream(stream) { handler($0) } }
    let copies = info.replicas == 1 ? "on one server" : "on \(info.replicas) servers"
    report.append("stream \(stream.name): \(info.messages) messages, \(copies)")
  }

  /// Waits for the result of a request.
  private func result<Value>(
    _ request: (@escaping (Result<Value, RelayFailure>) -> Void) -> Void
  ) throws -> Value {
    var result: Result<Value, RelayFailure>?
    try turn { connection.state == .ready }
    request { result = $0 }
    try turn { result != nil }
    return try result!.get()
  }

  private func turn(until isDone: () -> Bool) throws {
    while true {
      connection.proceed(.now)
      if isDone() { return }
      if case .closed(let failure) = connection.state { throw failure }
      guard Instant.now < deadline else {
        throw BridgeEnd(.unavailable, "the servers at \(settings.address) do not answer")
      }
      try connection.wait(until: deadline, wake)
    }
  }
}

extension BridgeEnd {
  /// What a failure of the connection means for a command.
  init(_ failure: RelayFailure) {
    let kind: Kind =
      switch failure.kind {
      case .refused, .notPermitted: .noRights
      case .unsuitable, .address, .jetStream: .refused
      default: .unavailable
      }
    self.init(kind, failure.reason)
  }
}
