/// The operations on one channel, and the check for a possible sequential order.
///
/// A channel is a register with versions: each acknowledged change returns the version that it
/// made. So the versions give the order of all changes. The remaining check is that the order
/// agrees with the clock: an operation that ended before the start of another precedes it, and no
/// value is read before the start of its put.
struct ChannelHistory {
  private struct Moment {
    let begin: Int64
    let end: Int64
    let version: Int
    let token: String
    let isWrite: Bool
    let worker: Int
  }

  private let channel: String
  private var moments: [Moment] = []
  /// The start of each token's put, by any worker; "-" stands for no value.
  private var begun: [String: Int64] = [:]
  /// The tokens that no operation may find, because their put was refused.
  private var refused: Set<String> = []
  /// The intervals of operations whose effect is unknown.
  private var unsure: [(begin: Int64, over: Int64)] = []
  /// Puts that were refused because the version differed from the expected one.
  ///
  /// The expected version was read after the first moment.
  private var conflicts: [(begin: Int64, end: Int64, expected: Int)] = []

  init(_ channel: String) { self.channel = channel }

  var count: Int { moments.count }

  /// - Parameter since: the end of the worker's previous call.
  mutating func add(_ call: MadeCall, since: Int64 = .min) {
    switch call.operation {
    case .put(_, let token, let expected):
      begun[token] = call.begin
      if case .refused(let reason)? = call.result {
        refused.insert(token)
        // A refusal for another reason reveals nothing about the version.
        if reason.hasPrefix("conflict"), let expected {
          conflicts.append((since, call.end, expected))
        }
      }
      add(call, isWrite: true)
    case .clear:
      // Clearing an empty channel changes nothing, so its version reveals no more than a reader's.
      add(call, isWrite: false)
    case .read: add(call, isWrite: false)
    default: break
    }
  }

  private mutating func add(_ call: MadeCall, isWrite: Bool) {
    guard case .version(let version, let token)? = call.result else {
      if case .refused? = call.result { return }
      if call.operation != .read(channel: channel) { unsure.append((call.begin, call.over)) }
      return
    }
    moments.append(
      Moment(
        begin: call.begin, end: call.end, version: version, token: token, isWrite: isWrite,
        worker: call.worker))
  }

  func violations() -> [Violation] {
    var found: [Violation] = []
    found += sameVersions()
    found += againstTheClock()
    found += needlessConflicts()
    return found
  }

  /// Checks that each version has one value, whose put was started by a worker.
  private func sameVersions() -> [Violation] {
    var found: [Violation] = []
    var tokens: [Int: Moment] = [:]
    for moment in moments {
      if let other = tokens[moment.version] {
        if other.token != moment.token || (other.isWrite && moment.isWrite) {
          found.append(
            Violation(
              .order,
              "version \(moment.version) of '\(channel)' is both '\(other.token)' and "
                + "'\(moment.token)'"))
        }
        if moment.isWrite { tokens[moment.version] = moment }
      } else {
        tokens[moment.version] = moment
      }
      guard moment.token != "-" else { continue }
      guard let time = begun[moment.token] else {
        found.append(Violation(.torn, "'\(moment.token)' in '\(channel)' was put by nobody"))
        continue
      }
      if refused.contains(moment.token) {
        found.append(
          Violation(.order, "'\(moment.token)' is in '\(channel)', and its put was refused"))
      }
      if time > moment.end {
        found.append(Violation(.order, "'\(moment.token)' was read before it was put"))
      }
    }
    return found
  }

  /// Checks that an operation sees the version of each operation that ended before its start, or a
  /// newer version.
  private func againstTheClock() -> [Violation] {
    var found: [Violation] = []
    let ended = moments.sorted { $0.end < $1.end }
    var next = 0
    var highest: Moment?
    for moment in moments.sorted(by: { $0.begin < $1.begin }) {
      while next < ended.count, ended[next].end < moment.begin {
        if ended[next].version >= highest?.version ?? 0 { highest = ended[next] }
        next += 1
      }
      guard let highest else { continue }
      let isBehind =
        moment.version < highest.version || (moment.isWrite && moment.version == highest.version)
      guard isBehind else { continue }
      found.append(
        Violation(
          .order,
          "worker \(moment.worker) \(moment.isWrite ? "made" : "saw") version \(moment.version) of "
            + "'\(channel)' after version \(highest.version) was there"))
    }
    return found
  }

  /// Checks that a put with an expected version is refused only if a different version existed at
  /// some time in between.
  private func needlessConflicts() -> [Violation] {
    var found: [Violation] = []
    for conflict in conflicts {
      let isUnsure = unsure.contains { $0.begin <= conflict.end && $0.over >= conflict.begin }
      if isUnsure { continue }
      let others = moments.contains { moment in
        moment.version != conflict.expected && moment.begin <= conflict.end
          && (moment.end >= conflict.begin || moment.version > conflict.expected)
      }
      if !others {
        found.append(
          Violation(
            .order,
            "a put into '\(channel)' was refused, though version \(conflict.expected) was there"))
      }
    }
    return found
  }
}
