internal import WormholePropertyLists
internal import WormholeRelay

/// How the servers are divided, as `wormhole bridge setup` has stored it: the number of streams for
/// flows and for records.
///
/// The hash of a machine, or of a group, selects one of them, so every bridge computes the same.
package struct Deployment: Equatable, Sendable {
  package let flows: Int
  package let states: Int

  static let subject = "whs.0.deployment"
  private static let format = 1
  private static let most = 4096

  private enum Key { static let (format, flows, states) = ("format", "flows", "states") }

  package init(flows: Int = 1, states: Int = 1) { (self.flows, self.states) = (flows, states) }

  /// Nil for a record of a later format, or in another form.
  init?(_ bytes: [UInt8]) {
    guard let json = try? JSONPropertyList.decode(bytes), json[Key.format]?.intValue == Self.format,
      let flows = json[Key.flows]?.intValue, (1...Self.most).contains(flows),
      let states = json[Key.states]?.intValue, (1...Self.most).contains(states)
    else { return nil }
    self.init(flows: flows, states: states)
  }

  var bytes: [UInt8] {
    let json: PropertyListValue = [
      Key.format: .integer(Int64(Self.format)), Key.flows: .integer(Int64(flows)),
      Key.states: .integer(Int64(states)),
    ]
    return Array(((try? JSONPropertyList.encode(json)) ?? "").utf8)
  }

  /// How many bundles of a flow the servers keep: twice what a sender may have unconfirmed, so a
  /// new bundle evicts only confirmed ones.
  static let bundlesPerFlow = 2 * OutFlow.mostBundles

  /// The streams; the first one has the deployment's own record.
  func streams(replicas: Int) -> [StreamSettings] {
    let week = Duration.seconds(7 * 24 * 3600)
    let states = (0..<states).map { shard in
      StreamSettings(
        name: Subjects.recordStream(shard), subjects: ["whs.\(shard).>"], replicas: replicas,
        maxPerSubject: 1, allowsDirect: true)
    }
    let flows = (0..<flows).map { shard in
      StreamSettings(
        name: Subjects.flowStream(shard), subjects: ["whf.\(shard).>"], replicas: replicas,
        maxAge: week, maxPerSubject: Self.bundlesPerFlow, allowsDirect: true)
    }
    return states + flows
  }
}

/// What the servers have stored of a setup.
enum SetupState {
  case done(Deployment)
  /// A later version of the command has set the servers up.
  case later
  /// The servers have no streams of the bridge, or no record of their number.
  case missing
}

extension JetStream {
  /// Finds out how the servers are set up.
  ///
  /// If the stream is missing, no server responds to the read, and a leaf hides even this. Servers
  /// without a leader are as silent, and so is a leaf before it knows a new stream. So the servers
  /// are asked for the stream itself. Only their statement that the stream is missing counts.
  func readSetup(_ handler: @escaping (Result<SetupState, RelayFailure>) -> Void) {
    let stream = Subjects.recordStream(0)
    lastMessage(of: Deployment.subject, in: stream) { [self] result in
      switch result {
      case .success(nil): handler(.success(.missing))
      case .success(let message?):
        handler(.success(Deployment(message.payload).map { .done($0) } ?? .later))
      case .failure(let failure) where [.noResponders, .timedOut].contains(failure.kind):
        streamInfo(stream) { info in
          guard case .failure(let found) = info, found.errorCode == JetStreamError.noStream else {
            return handler(.failure(failure))
          }
          handler(.success(.missing))
        }
      case .failure(let failure): handler(.failure(failure))
      }
    }
  }
}

extension BridgeEnd {
  static let noStreams = BridgeEnd(
    .unavailable, "the servers do not have the streams of the bridge",
    hint: "run 'wormhole bridge setup' once")

  static let laterSetup = BridgeEnd(
    .refused, "the servers were set up by a later version of 'wormhole bridge'",
    hint: "use that version here, too")
}
