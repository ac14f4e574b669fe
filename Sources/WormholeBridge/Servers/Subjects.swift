internal import WormholeContainerStorage

/// The names of streams and subjects on the servers.
///
/// Names of members and groups have the container's escaped form, with `=` in place of `%` and
/// `=2E` for a dot, which separates the parts of a subject.
package struct Subjects: Equatable, Sendable {
  let group: String
  let deployment: Deployment

  init(group: String, _ deployment: Deployment) throws(WormholeError) {
    self.group = try Self.part(group)
    self.deployment = deployment
  }

  /// A name as one part of a subject.
  static func part(_ name: String) throws(WormholeError) -> String {
    do throws(EscapedName.Problem) {
      let escaped = try EscapedName.escape(name)
      return escaped.split(separator: ".", omittingEmptySubsequences: false)
        .joined(separator: "=2E").split(separator: "%", omittingEmptySubsequences: false)
        .joined(separator: "=")
    } catch {
      throw WormholeError(.invalidName, "use name", name, because: "it cannot be a name")
    }
  }

  /// The name that has become a part of a subject; nil for a part that no name has.
  static func name(_ part: Substring) -> String? {
    EscapedName.unescape(
      part.split(separator: "=", omittingEmptySubsequences: false).joined(separator: "%"))
  }

  // MARK: Streams

  static let flowStream = "WHF"
  static let recordStream = "WHS"
  static func flowStream(_ shard: Int) -> String { "\(flowStream)_\(shard)" }
  static func recordStream(_ shard: Int) -> String { "\(recordStream)_\(shard)" }

  private func flowShard(_ machine: String) -> Int {
    Int(FowlerHash.hash(machine.utf8) % UInt64(deployment.flows))
  }

  private var recordShard: Int { Int(FowlerHash.hash(group.utf8) % UInt64(deployment.states)) }

  func flowStream(to machine: String) -> String { Self.flowStream(flowShard(machine)) }
  var recordStream: String { Self.recordStream(recordShard) }

  /// Bundles from a machine to another one.
  func flow(from sender: String, to receiver: String) -> String {
    "whf.\(flowShard(receiver)).\(receiver).\(group).\(sender)"
  }

  /// All bundles to a machine.
  func flows(to receiver: String) -> String { flow(from: "*", to: receiver) }

  // MARK: Records

  private var records: String { "whs.\(recordShard).\(group)" }
  var allRecords: String { "\(records).>" }
  func machineRecord(_ machine: String) -> String { "\(records).x.\(machine)" }

  func memberRecord(_ member: String) throws(WormholeError) -> String {
    "\(records).m.\(try Self.part(member))"
  }

  func channelRecord(_ channel: String) throws(WormholeError) -> String {
    "\(records).h.\(try Self.part(channel))"
  }

  func channelCopy(_ channel: String) throws(WormholeError) -> String {
    "\(records).v.\(try Self.part(channel))"
  }

  enum RecordSubject: Equatable {
    case machine(String)
    case member(String)
    /// The home of a channel, and its latest content.
    case channelHome(String)
    case channelCopy(String)
  }

  func record(_ subject: String) -> RecordSubject? {
    let parts = subject.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 5 else { return nil }
    switch parts[3] {
    case "x": return .machine(String(parts[4]))
    case "m": return Self.name(parts[4]).map { .member($0) }
    case "h": return Self.name(parts[4]).map { .channelHome($0) }
    case "v": return Self.name(parts[4]).map { .channelCopy($0) }
    default: return nil
    }
  }

  // MARK: Subjects without a stream

  var heartbeats: String { "whb.\(group).*" }
  func heartbeat(_ machine: String) -> String { "whb.\(group).\(machine)" }

  enum MachineWord: String {
    /// What a machine has received.
    case confirm
    /// A machine is asked for its position in a flow.
    case ask
    /// A machine is asked whether a flow is its own.
    case own
    /// A request or an immediate message to a process.
    case live
    /// A change of a channel, to its home.
    case put
    /// A member is to be started.
    case wake
    /// A machine is asked whether its bridge runs.
    case here
  }

  static func words(to machine: String) -> String { "whm.\(machine).*.*" }

  static func word(_ word: MachineWord, to machine: String, from sender: String) -> String {
    "whm.\(machine).\(word.rawValue).\(sender)"
  }

  /// The word, and the machine of its sender.
  static func word(_ subject: String) -> (word: MachineWord, sender: String)? {
    let parts = subject.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 4, let word = MachineWord(rawValue: String(parts[2])),
      Incarnation(rawValue: String(parts[3])) != nil
    else { return nil }
    return (word, String(parts[3]))
  }
}
