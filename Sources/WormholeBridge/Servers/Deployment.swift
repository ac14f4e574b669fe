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
