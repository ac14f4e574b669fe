internal import FoundationEssentials
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The channels that a bridge carries: channels of this machine, and copies.
final class ChannelTraffic {
  /// A channel whose home is this machine.
  struct Own {
    var watch: Subscription?
    /// Whether the content may be newer than what the servers have.
    var isDirty = true
    var isPublishing = false
    /// When the channel may be published again.
    var next = Instant.longAgo
    /// The version that was read last, and the version on the servers.
    var version: Int?
    var stored: Int?
  }

  /// The content of a channel, as its home has published it.
  struct Copy {
    let machine: String
    /// The machine that becomes the home, and the changes that were asked for last.
    var heir: String?
    var operations: [String: String] = [:]
    let content: Carrier.ChannelContent
    /// When the servers stored it, by their clock, in nanoseconds since 1970.
    let at: Int64
  }

  var own: [String: Own] = [:]
  var unread = UnreadEntries()
  /// Copies that become channels of this machine, because an operator gave the home up.
  var wanted: Set<String> = []
  /// The channels of this machine on their way to another home.
  var moves: [String: ChannelMove] = [:]
  /// The homes, as the servers have them.
  var homes: [String: Home] = [:]
  /// The positions of home records that cannot be read.
  var unreadableHomes: [String: UInt64] = [:]
  var copies: [String: Copy] = [:]
  /// When the home last stated that the copy is its latest content.
  var stated: [String: Date] = [:]
  /// Homes that are being claimed.
  var claims: Set<String> = []
  /// Why a channel is not carried.
  var conflicts: [String: String] = [:]
  /// Takes the changes of programs of this machine; made for the first copy.
  var desk: ChangeDesk?
  /// Make the changes of other machines, by channel.
  var makers: [String: ChangeWorker] = [:]
  /// The last change of each machine that was asked here, by channel and machine.
  var asked: [[String]: [Int]] = [:]
  var queues: [String: ChangeQueue] = [:]
  /// The number of the last change that was asked.
  var lastChange = 0
  /// Channels that this machine could not take over yet.
  var inheritances: Set<String> = []
  var nextLook = Instant.longAgo
  var list: ChannelList?
  /// When the list that was read was changed, and whether it has been read twice since.
  var (listed, isListed) = (Int64(-1), false)
  var hasReadChanges = false
  /// Whether all records were read over this connection.
  var hasReadRecords = false

  /// At most 20 contents of a channel are published in a second.
  static let pause = Duration.milliseconds(50)

  /// Why a value cannot be carried.
  static let excess = "its value has more bytes than the servers carry"

  /// Whether the content of a channel of this machine may be published as that of its home.
  ///
  /// Once the channel is given away, its last content names the heir. And while this machine cannot
  /// take a channel, the content of the former home must stay on the servers.
  func mayPublish(_ name: String) -> Bool {
    moves[name]?.legacy == nil && !inheritances.contains(name)
  }

  /// Drops contents without a home record, after the reader has given all records.
  ///
  /// Contents stay in memory, and each machine of the group may write contents.
  func forgetStrays() {
    guard !hasReadRecords else { return }
    hasReadRecords = true
    copies = copies.filter { hasHomeRecord($0.key) }
  }

  /// Whether the channel has a home record, readable or not.
  ///
  /// The home writes its record again, and not the content that the servers have.
  func hasHomeRecord(_ name: String) -> Bool {
    homes[name] != nil || unreadableHomes[name] != nil
  }

  // MARK: Files

  static let changesName = "changes"

  private enum Key {
    static let (machine, version, sent) = ("machine", "version", "sent")
    static let (writer, value, channel, operation) = ("writer", "value", "channel", "operation")
    static let (expected, generation, number) = ("expected", "generation", "number")
    static let (result, reason, until) = ("result", "reason", "until")
    static let (heir, operations) = ("heir", "operations")
  }

  // MARK: Content

  /// - Parameter offset: the servers' clock less this machine's, in nanoseconds: the content states
  ///   its end by the servers' clock.
  static func bytes(
    _ content: Carrier.ChannelContent, of machine: String, heir: String? = nil,
    _ operations: [String: String] = [:], offset: Int64
  ) -> [UInt8]? {
    var list: [String: PropertyListValue] = [
      Key.machine: .string(machine), Key.version: .integer(Int64(content.version)),
      Key.sent: .date(content.sent), Key.writer: .string(content.writer),
    ]
    list[Key.value] = content.value
    list[Key.heir] = heir.map { .string($0) }
    if heir != nil { list[Key.operations] = .dictionary(operations.mapValues { .string($0) }) }
    list[Key.until] = content.until.map { .date($0.moved(by: offset)) }
    return try? BinaryEncoder().encode(PropertyListValue.dictionary(list))
  }

  static func copy(_ bytes: [UInt8], at: Int64, offset: Int64) -> Copy? {
    guard let list = try? BinaryPropertyList.decode(bytes),
      let machine = list[Key.machine]?.stringValue, Incarnation(rawValue: machine) != nil,
      let version = list[Key.version]?.intValue, (1..<Self.mostVersions).contains(version),
      let sent = list[Key.sent]?.dateValue,
      let writer = list[Key.writer]?.stringValue
    else { return nil }
    return Copy(
      machine: machine, heir: list[Key.heir]?.stringValue,
      operations: operations(list),
      content: Carrier.ChannelContent(
        version: version, sent: sent, writer: writer, value: list[Key.value],
        until: list[Key.until]?.dateValue?.moved(back: offset)), at: at)
  }

  private static func operations(_ list: PropertyListValue) -> [String: String] {
    let all = list[Key.operations]?.dictionaryValue?.compactMapValues(\.stringValue) ?? [:]
    let sound = all.filter { machine, operation in
      Incarnation(rawValue: machine) != nil && operation.utf8.count <= Self.longestOperation
    }
    return sound.count <= Carrier.mostMachines ? sound : [:]
  }

  // MARK: Changes

  /// The ID of a change is in each later value of the channel, and whoever has the right may ask.
  private static let longestOperation = 64
  /// No home counts so far; the next version can still be computed.
  private static let mostVersions = Int.max - 1

  static func list(
    _ change: Carrier.ChannelChange, offset: Int64 = 0
  ) -> [String: PropertyListValue] {
    var list: [String: PropertyListValue] = [
      Key.channel: .string(change.channel), Key.operation: .string(change.operation),
    ]
    list[Key.expected] = change.expected.map { .integer(Int64($0)) }
    list[Key.value] = change.value
    list[Key.until] = change.until.map { .date($0.moved(by: offset)) }
    return list
  }

  static func change(
    _ list: PropertyListValue, offset: Int64 = 0
  ) -> Carrier.ChannelChange? {
    guard let channel = list[Key.channel]?.stringValue, (try? EscapedName.escape(channel)) != nil,
      let operation = list[Key.operation]?.stringValue,
      operation.utf8.count <= Self.longestOperation
    else { return nil }
    return Carrier.ChannelChange(
      channel: channel, operation: operation, expected: list[Key.expected]?.intValue,
      value: list[Key.value], until: list[Key.until]?.dateValue?.moved(back: offset))
  }

  /// - Parameter number: the number of the change among all of the machine, after its start.
  static func bytes(
    _ change: Carrier.ChannelChange, generation: Int, number: Int, offset: Int64
  ) -> [UInt8]? {
    var list = Self.list(change, offset: offset)
    list[Key.generation] = .integer(Int64(generation))
    list[Key.number] = .integer(Int64(number))
    return try? BinaryEncoder().encode(PropertyListValue.dictionary(list))
  }

  static func number(_ list: PropertyListValue) -> [Int]? {
    guard let generation = list[Key.generation]?.intValue, let number = list[Key.number]?.intValue
    else { return nil }
    return [generation, number]
  }

  static func bytes(_ answer: Carrier.ChannelAnswer, offset: Int64) -> [UInt8]? {
    var list: [String: PropertyListValue] = [
      Key.result: .string(answer.result.rawValue), Key.version: .integer(Int64(answer.version)),
    ]
    list[Key.value] = answer.value
    list[Key.reason] = answer.reason.map { .string($0) }
    list[Key.until] = answer.until.map { .date($0.moved(by: offset)) }
    return try? BinaryEncoder().encode(PropertyListValue.dictionary(list))
  }

  /// The answer in place of an answer whose value cannot be carried.
  static func tooLarge(offset: Int64) -> [UInt8]? {
    bytes(
      Carrier.ChannelAnswer(
        .refused, reason: "the channel has another value, which is too large for the servers"),
      offset: offset)
  }

  static func answer(_ bytes: [UInt8], offset: Int64) -> Carrier.ChannelAnswer? {
    guard let list = try? BinaryPropertyList.decode(bytes),
      let word = list[Key.result]?.stringValue,
      let result = Carrier.ChannelAnswer.Result(rawValue: word),
      let version = list[Key.version]?.intValue
    else { return nil }
    return Carrier.ChannelAnswer(
      result, version: version, value: list[Key.value], reason: list[Key.reason]?.stringValue,
      until: list[Key.until]?.dateValue?.moved(back: offset))
  }
}

extension Date {
  /// The same moment by another clock.
  fileprivate func moved(by nanoseconds: Int64) -> Date {
    addingTimeInterval(Double(nanoseconds) / 1e9)
  }

  /// The moment that ``moved(by:)`` has moved.
  fileprivate func moved(back nanoseconds: Int64) -> Date {
    addingTimeInterval(Double(nanoseconds) / -1e9)
  }
}
