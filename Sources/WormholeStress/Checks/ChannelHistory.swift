/// What was done to one channel, and whether it could have been done one after the other.
///
/// A channel is a register with versions: each change that has been acknowledged says which version
/// it made. So the order of all changes is told by the versions, and what is left to look at is
/// that it fits the clock: whatever had ended before something else began comes before it, and
/// nothing is read before it was begun.
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
  /// When each token was begun to be put, by whoever did; "-" stands for nothing.
  private var begun: [String: Int64] = [:]
  /// What nobody may find, as its put was refused.
  private var refused: Set<String> = []
  /// When something happened of which it is not known whether it did.
  private var unsure: [(begin: Int64, over: Int64)] = []
  /// Puts that were refused because another version was there than when it was looked at, which is
  /// some time after the first moment.
  private var conflicts: [(begin: Int64, end: Int64, expected: Int)] = []

  init(_ channel: String) { self.channel = channel }

  var count: Int { moments.count }

  /// - Parameter since: when its worker had done what it did before.
  mutating func add(_ call: MadeCall, since: Int64 = .min) {
    switch call.operation {
    case .put(_, let token, let expected):
      begun[token] = call.begin
      if case .refused(let reason)? = call.result {
        refused.insert(token)
        // Other refusals say nothing about the version.
        if reason.hasPrefix("conflict"), let expected {
          conflicts.append((since, call.end, expected))
        }
      }
      add(call, isWrite: true)
    case .clear:
      // Clearing what is clear changes nothing, so its version says no more than a reader's.
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

  /// Each version is one value, which somebody has begun to put.
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

  /// Whoever begins after something has ended sees that, or something newer.
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

  /// A put that names a version is refused only if another one was there at some time in between.
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
