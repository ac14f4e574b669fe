internal import WormholeRelay
internal import WormholeSyscalls

/// Creates the streams of a deployment, once for all machines and groups.
///
/// Bridges do not create streams: the right to do so reaches beyond a machine's own subjects. After
/// a total loss of the servers' data, somebody runs the setup again.
package struct ServerSetup {
  private let dialog: ServerDialog
  /// What was done, for people.
  private var report: [String] = []

  private init(_ dialog: ServerDialog) { self.dialog = dialog }

  /// Creates what is missing; returns a line for each stream.
  ///
  /// - Parameter replicas: how many servers have each message: 3, or 1 for a single server.
  package static func run(
    _ settings: Bridge.Settings, _ deployment: Deployment, replicas: Int
  ) throws -> [String] {
    try ServerDialog.run(settings, "wormhole-setup") { dialog in
      var setup = ServerSetup(dialog)
      try setup.run(deployment, replicas)
      return setup.report
    }
  }

  private mutating func run(_ deployment: Deployment, _ replicas: Int) throws {
    let streams = deployment.streams(replicas: replicas)
    try create(streams[0])
    let hasRecord = try isStored(deployment)
    for stream in streams.dropFirst() { try create(stream) }
    if !hasRecord { try store(deployment) }
  }

  /// Whether the servers have the record of the deployment; a record of another one is an error.
  private func isStored(_ deployment: Deployment) throws -> Bool {
    let dialog = dialog
    let stored = try dialog.resultOfNewStream { handler in
      dialog.jetStream.lastMessage(of: Deployment.subject, in: Subjects.recordStream(0)) {
        handler($0)
      }
    }
    guard let stored else { return false }
    guard let found = Deployment(stored.payload) else { throw BridgeEnd.laterSetup }
    guard found == deployment else {
      throw BridgeEnd(
        .refused,
        "the servers are set up with \(found.flows) streams of flows and \(found.states) of "
          + "records", hint: "use --flows \(found.flows) --states \(found.states)")
    }
    return true
  }

  private func store(_ deployment: Deployment) throws {
    let dialog = dialog
    do {
      _ = try dialog.resultOfNewStream { handler in
        dialog.jetStream.publish(
          Deployment.subject, expectedLast: 0, deployment.bytes, within: .seconds(10)
        ) { handler($0) }
      }
    } catch let failure as RelayFailure {
      guard JetStreamError.wrongLastSequence.contains(failure.errorCode ?? 0) else { throw failure }
      // Another setup has stored a record since this one has looked; a server with a copy of the
      // stream may not know the record yet.
      guard try isStored(deployment) else {
        throw BridgeEnd(
          .unavailable, "another setup has stored its record in the meantime",
          hint: "run the command again")
      }
    }
  }

  private mutating func create(_ stream: StreamSettings) throws {
    let dialog = dialog
    let info = try dialog.result { handler in
      dialog.jetStream.createStream(stream) { handler($0) }
    }
    let copies = info.replicas == 1 ? "on one server" : "on \(info.replicas) servers"
    report.append("stream \(stream.name): \(info.messages) messages, \(copies)")
  }
}

extension BridgeEnd {
  /// What a failure of the connection means for a command.
  init(_ failure: RelayFailure) {
    let kind: Kind =
      switch failure.kind {
      case .refused, .notPermitted: .noRights
      case .jetStream where failure.mayPass: .unavailable
      case .unsuitable, .address, .jetStream: .refused
      default: .unavailable
      }
    self.init(kind, failure.reason)
  }
}
