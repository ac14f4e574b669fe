internal import FoundationEssentials
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// What a machine says of itself every second: its members that run.
///
/// A machine without running members, and without channels and queues that it shares, sends fewer
/// heartbeats. The beat states the interval, so no machine has to know why another one is quiet.
struct Heartbeat {
  struct MemberRun: Equatable {
    let incarnation: Incarnation
    let program: String
    let since: Date
    let info: [String: String]
  }

  /// The machine that a queue's former home has made its home.
  struct Heir: Equatable {
    let machine: String
    let term: Int
    let before: [String]
  }

  let generation: Int
  let running: [String: MemberRun]
  /// Members with as many waiting messages as they may have.
  let full: Set<String>
  /// The version of each channel whose home the machine is.
  let channels: [String: Int]
  /// The queues whose home the machine is, and how often their homes have moved.
  let queues: [String: Int]
  /// The next homes of queues, after the machine has given the queues away.
  let heirs: [String: Heir]
  /// Lent messages of other machines' heartbeats whose claims have ended.
  let late: Set<String>
  /// The messages that the machine's workers have of queues elsewhere.
  let work: [String: WorkerStatement]
  /// By this machine's clock, when the beat arrived.
  let arrived: Instant

  /// How long until the next beat, at the most.
  let interval: Duration

  static let interval = Duration.seconds(1)
  /// The interval of a machine that shares nothing at present.
  static let quietInterval = Duration.seconds(5)
  /// A machine cannot ask others to wait for it longer.
  private static let longestInterval = Duration.seconds(60)

  /// Members count as absent after so long without a beat.
  var longestSilence: Duration { interval * 4 }

  private enum Key {
    static let (generation, here, incarnation) = ("generation", "here", "incarnation")
    static let (program, since, info, full) = ("program", "since", "info", "full")
    static let (channels, queues, work) = ("channels", "queues", "work")
    static let (room, held) = ("room", "held")
    static let (heirs, late, machine) = ("heirs", "late", "machine")
    static let (term, before) = ("term", "before")
    static let interval = "every"
  }

  /// - Parameter hasInfo: whether the members' information is a part of the beat.
  static func bytes(
    generation: Int, _ members: some Collection<Profile>, full: some Collection<String>,
    hasInfo: Bool = true,
    interval: Duration = Heartbeat.interval, channels: [String: Int] = [:],
    queues: [String: Int] = [:], heirs: [String: Heir] = [:], late: Set<String> = [],
    work: [String: WorkerStatement] = [:]
  ) -> [UInt8]? {
    var here: [String: PropertyListValue] = [:]
    for member in members where member.isRunning {
      let info: [String: PropertyListValue] =
        hasInfo ? member.info.mapValues { .string($0) } : [:]
      here[member.name] = [
        Key.incarnation: .string(member.incarnation.rawValue), Key.program: .string(member.program),
        Key.since: .date(member.joinedAt),
        Key.info: .dictionary(info),
      ]
    }
    let works = work.mapValues { work -> PropertyListValue in
      [
        Key.machine: .string(work.home), Key.room: .integer(Int64(work.room)),
        Key.held: .array(work.held.map { .string($0) }),
      ]
    }
    let given = heirs.mapValues { heir -> PropertyListValue in
      [
        Key.machine: .string(heir.machine), Key.term: .integer(Int64(heir.term)),
        Key.before: .array(heir.before.map { .string($0) }),
      ]
    }
    let list: PropertyListValue = [
      Key.queues: .dictionary(queues.mapValues { .integer(Int64($0)) }),
      Key.heirs: .dictionary(given), Key.late: .array(late.map { .string($0) }),
      Key.work: .dictionary(works),
      Key.generation: .integer(Int64(generation)), Key.here: .dictionary(here),
      Key.full: .array(full.map { .string($0) }),
      Key.channels: .dictionary(channels.mapValues { .integer(Int64($0)) }),
      Key.interval: .real(interval / .seconds(1)),
    ]
    return try? BinaryEncoder().encode(list)
  }

  /// Nil for bytes in another form: whoever has the right may send anything.
  init?(_ bytes: [UInt8], _ now: Instant) {
    guard let list = try? BinaryPropertyList.decode(bytes),
      let generation = list[Key.generation]?.intValue, let here = list[Key.here]?.dictionaryValue
    else { return nil }
    self.generation = generation
    arrived = now
    channels = list[Key.channels]?.dictionaryValue?.compactMapValues(\.intValue) ?? [:]
    queues = (list[Key.queues]?.dictionaryValue ?? [:]).compactMapValues {
      $0.intValue.flatMap(Elsewhere.validTerm)
    }
    heirs = (list[Key.heirs]?.dictionaryValue ?? [:]).compactMapValues { heir in
      guard let machine = heir[Key.machine]?.stringValue,
        let term = heir[Key.term]?.intValue.flatMap(Elsewhere.validTerm)
      else { return nil }
      let before = (heir[Key.before]?.arrayValue ?? []).compactMap(\.stringValue)
      return Heir(machine: machine, term: term, before: Elsewhere.joined([], before))
    }
    late = Set((list[Key.late]?.arrayValue ?? []).compactMap(\.stringValue))
    work = (list[Key.work]?.dictionaryValue ?? [:]).compactMapValues { work in
      guard let home = work[Key.machine]?.stringValue, let room = work[Key.room]?.intValue,
        (0...QueueTraffic.largestRoom).contains(room)
      else { return nil }
      let held = Set((work[Key.held]?.arrayValue ?? []).compactMap(\.stringValue))
      return WorkerStatement(home: home, room: room, held: held)
    }
    let stated = list[Key.interval]?.doubleValue ?? 1
    let seconds = stated.isFinite ? min(max(stated, 1), Self.longestInterval / .seconds(1)) : 1
    interval = .seconds(seconds)
    full = Set((list[Key.full]?.arrayValue ?? []).compactMap(\.stringValue))
    running = here.compactMapValues { member in
      guard
        let incarnation = member[Key.incarnation]?.stringValue
          .flatMap({ Incarnation(rawValue: $0) }),
        let program = member[Key.program]?.stringValue, let since = member[Key.since]?.dateValue
      else { return nil }
      let info = member[Key.info]?.dictionaryValue?.compactMapValues(\.stringValue) ?? [:]
      guard MemberProfile.fits(info), program.utf8.count <= 1024 else { return nil }
      return MemberRun(incarnation: incarnation, program: program, since: since, info: info)
    }
  }
}

/// What a beat states, and what it leaves out if the servers would refuse more bytes.
///
/// A beat that is refused would let all members of the machine appear absent, and all messages that
/// its workers have would go back.
struct HeartbeatContent {
  private(set) var members: [Profile]
  private(set) var hasInfo = true
  private(set) var full: Set<String>
  private(set) var channels: [String: Int]
  private(set) var queues: [String: Int]
  private(set) var heirs: [String: Heartbeat.Heir]
  private(set) var late: Set<String>
  private(set) var work: [String: WorkerStatement]
  /// The trouble that names what is left out; nil if nothing is.
  private(set) var omission: String?

  static let withoutInfo =
    "the heartbeat is too large for the servers: it leaves out the information of members"
  static let withoutSome =
    "the heartbeat is too large for the servers: it leaves out the information of members, and "
    + "some members, channels, queues or lent messages"
  /// The reason for a queue that is left out.
  static let withoutQueue = "the heartbeat is too large for the servers: it leaves out the queue"

  /// More bytes than an entry has beside its texts, which take at most twice their bytes.
  private static let (memberBytes, nameBytes, messageBytes) = (200, 40, 16)
  /// More bytes than a beat without entries has.
  private static let emptyBytes = 1024

  init(
    _ members: [Profile], full: Set<String> = [], channels: [String: Int] = [:],
    queues: [String: Int] = [:], heirs: [String: Heartbeat.Heir] = [:], late: Set<String> = [],
    work: [String: WorkerStatement] = [:]
  ) {
    (self.members, self.full, self.late, self.work) = (members, full, late, work)
    (self.channels, self.queues, self.heirs) = (channels, queues, heirs)
  }

  /// Encodes as much as fits.
  mutating func encoded(
    atMost limit: Int, _ encode: (HeartbeatContent) -> [UInt8]?
  ) -> [UInt8]? {
    if let whole = encode(self), whole.count <= limit { return whole }
    (hasInfo, omission) = (false, Self.withoutInfo)
    if let bare = encode(self), bare.count <= limit { return bare }
    omission = Self.withoutSome
    shorten(to: max(0, limit - Self.emptyBytes))
    return encode(self)
  }

  /// Divides the bytes: a quarter for names, and the rest in halves for members and lent messages.
  ///
  /// A part that needs fewer bytes leaves its rest to the other parts.
  ///
  /// The order is the same in each beat: what is left out does not change.
  private mutating func shorten(to limit: Int) {
    let needed = members.reduce(0) { $0 + Self.bytes(of: $1) }
    let lent = lentBytes
    let rest = limit - shortenNames(to: max(limit / 4, limit - needed - lent))
    let used = shortenMembers(to: max(rest / 2, rest - lent))
    shortenMessages(to: rest - used)
  }

  /// Leaves out names, and returns the bytes of all others.
  ///
  /// A queue without its heir has no home; the version of a channel shows only that its copies are
  /// the latest.
  private mutating func shortenNames(to limit: Int) -> Int {
    var bytes = limit
    heirs = Self.first(of: heirs, within: &bytes) { Self.bytes(ofHeir: $1, of: $0) }
    full = Self.first(of: full, within: &bytes)
    queues = Self.first(of: queues, within: &bytes) { name, _ in Self.bytes(ofName: name) }
    channels = Self.first(of: channels, within: &bytes) { name, _ in Self.bytes(ofName: name) }
    return limit - bytes
  }

  private mutating func shortenMembers(to limit: Int) -> Int {
    var bytes = limit
    var first: [Profile] = []
    for member in members.sorted(by: { $0.name < $1.name }) {
      let size = Self.bytes(of: member)
      guard size <= bytes else { break }
      bytes -= size
      first.append(member)
    }
    members = first
    return limit - bytes
  }

  private mutating func shortenMessages(to limit: Int) {
    var bytes = limit
    // Of a queue that is left out, the home takes all lent messages for given back.
    work = Self.first(of: work, within: &bytes) { name, _ in Self.bytes(ofWorkOn: name) }
    for (queue, statement) in work.sorted(by: { $0.key < $1.key }) {
      let held = Self.first(of: statement.held, within: &bytes)
      guard held.count < statement.held.count else { continue }
      // The home would lend further messages, and end their claims as well.
      work[queue] = WorkerStatement(
        home: statement.home, room: min(statement.room, held.count), held: held)
    }
    late = Self.first(of: late, within: &bytes)
  }

  // MARK: Sizes

  private var lentBytes: Int {
    var bytes = late.reduce(0) { $0 + Self.bytes(of: $1) }
    for (queue, statement) in work {
      bytes += Self.bytes(ofWorkOn: queue)
      bytes += statement.held.reduce(0) { $0 + Self.bytes(of: $1) }
    }
    return bytes
  }

  private static func bytes(of id: String) -> Int { messageBytes + 2 * id.utf8.count }

  private static func bytes(ofName name: String) -> Int { nameBytes + 2 * name.utf8.count }

  private static func bytes(ofWorkOn queue: String) -> Int { memberBytes + 2 * queue.utf8.count }

  private static func bytes(ofHeir heir: Heartbeat.Heir, of queue: String) -> Int {
    heir.before.reduce(memberBytes + bytes(of: queue)) { $0 + bytes(of: $1) }
  }

  private static func bytes(of member: Profile) -> Int {
    memberBytes + 2 * (member.name.utf8.count + member.program.utf8.count)
  }

  private static func first(of ids: Set<String>, within bytes: inout Int) -> Set<String> {
    var first: Set<String> = []
    for id in ids.sorted() {
      let size = Self.bytes(of: id)
      guard size <= bytes else { break }
      bytes -= size
      first.insert(id)
    }
    return first
  }

  private static func first<Entry>(
    of entries: [String: Entry], within bytes: inout Int, _ size: (String, Entry) -> Int
  ) -> [String: Entry] {
    var first: [String: Entry] = [:]
    for (name, entry) in entries.sorted(by: { $0.key < $1.key }) {
      let needed = size(name, entry)
      guard needed <= bytes else { break }
      bytes -= needed
      first[name] = entry
    }
    return first
  }
}
