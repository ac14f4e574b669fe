/// The accesses to the files with their times, the contents found and left by each access, and the
/// check of the promises.
///
/// Each access records the start of its body and, before the end of the body, the contents read and
/// written. So the clock shows two bodies that ran at the same time, whatever the files contain.
/// The contents show whether a change was lost, because each access adds one to the number that it
/// read.
struct AccessHistory {
  typealias Use = SharedFiles.Use
  typealias Content = SharedFiles.Content

  /// An access that was admitted.
  private struct Body {
    let call: MadeCall
    let token: String
    let uses: [Use]
    let takesOver: Bool
    let begin: Int64
    /// The time until which the body certainly ran.
    var end: Int64
    var before: [Content] = []
    var after: [Content] = []

    /// The result of the access, in a word.
    var outcome: Outcome { Outcome(call.result) }
  }

  private enum Outcome: Equatable {
    case done
    /// Another access overtook this one.
    case superseded
    /// Conflicting accesses were in progress: the access was never admitted.
    case keptOut(String)
    case unknown

    init(_ result: Journal.Result?) {
      switch result {
      case .done?: self = .done
      case .refused(let reason)?:
        switch String(reason.prefix { $0 != ":" }) {
        case "superseded": self = .superseded
        case let code where ["stopped", "deadlock", "timedOut", "nested"].contains(code):
          self = .keptOut(code)
        default: self = .unknown
        }
      default: self = .unknown
      }
    }
  }

  private var bodies: [Body] = []
  private var counters: [String: CounterHistory] = [:]
  /// The files that each access was to write, the start of the access, and whether it had no
  /// effect.
  private var writers: [String: (files: Set<String>, begin: Int64, isVoid: Bool)] = [:]
  private(set) var found: [Violation] = []
  private(set) var takeovers = 0

  /// The used files, whose number is the number of histories.
  var files: Set<String> { Set(bodies.flatMap { $0.uses.map(\.file) }) }
  var count: Int { writers.count }

  /// - Parameter entries: all entries of one worker.
  mutating func add(_ entries: [Journal.Entry], calls: [MadeCall]) {
    let inside = Self.moments(in: entries)
    for call in calls {
      guard case .access(let token, let uses, let takesOver) = call.operation else { continue }
      let outcome = Outcome(call.result)
      let written = uses.filter { $0.way != .read }
      // With several files, each replacement happens separately.
      let isVoid =
        if case .keptOut = outcome { true } else {
          outcome == .superseded && written.count == 1 && written[0].way == .replace
        }
      writers[token] = (Set(written.map(\.file)), call.begin, isVoid)
      let moment = inside[token]
      judge(outcome, token, uses, wasInside: moment != nil, isNested: call.isNested)
      if let moment {
        bodies.append(
          Body(
            call: call, token: token, uses: uses, takesOver: takesOver, begin: moment.begin,
            end: moment.end, before: moment.before, after: moment.after))
      }
      for (place, use) in uses.enumerated() where use.way != .read && use.kind != .loose {
        let sum = moment.flatMap { $0.after.isEmpty ? nil : $0.after[place].count }
        let result: Journal.Result? =
          if isVoid { .refused("-") } else if outcome == .done, let sum { .number(sum) } else {
            .failed("-")
          }
        // An access that was never admitted has added nothing.
        guard moment != nil || outcome == .done else { continue }
        counters[use.file, default: CounterHistory(use.file)].add(
          MadeCall(
            worker: call.worker, operation: call.operation, begin: call.begin, end: call.end,
            result: result))
      }
    }
  }

  private struct Moment {
    let begin: Int64
    var end: Int64
    var before: [Content] = []
    var after: [Content] = []
  }

  /// Returns the interval of each body; if the process died in the body, up to the last entry of
  /// the process.
  private static func moments(in entries: [Journal.Entry]) -> [String: Moment] {
    var moments: [String: Moment] = [:]
    var open: Set<String> = []
    for entry in entries {
      if case .life = entry.event { open = [] }
      for token in open { moments[token]?.end = entry.time }
      switch entry.event {
      case .inside(let token):
        moments[token] = Moment(begin: entry.time, end: entry.time)
        open.insert(token)
      case .outside(let token, let before, let after):
        moments[token]?.before = before
        moments[token]?.after = after
        open.remove(token)
      default: break
      }
    }
    return moments
  }

  private mutating func judge(
    _ outcome: Outcome, _ token: String, _ uses: [Use], wasInside: Bool, isNested: Bool
  ) {
    let what = "access '\(token)' to \(uses.map { "'\($0.name)'" }.joined(separator: " and "))"
    switch outcome {
    case .done where !wasInside:
      found.append(Violation(.lost, "\(what) was had, and its body did not run"))
    case .superseded:
      takeovers += 1
      if uses.contains(where: { $0.kind == .patient }) {
        found.append(Violation(.order, "\(what) was taken over without a request"))
      }
    case .keptOut(let code):
      if wasInside { found.append(Violation(.order, "\(what) was refused after its body ran")) }
      if code == "timedOut" {
        found.append(Violation(.stuck, "\(what) was waited for until the deadline"))
      }
      // If files are ordered by two containers, an access may hold one file while it waits for the
      // other.
      let hasSome = isNested || Set(uses.map { $0.name == SharedFiles.groupFile }).count > 1
      if code == "nested" || code == "deadlock" && !hasSome {
        found.append(Violation(.stuck, "\(what) was refused as '\(code)', and is in no ring"))
      }
    default: break
    }
  }

  // MARK: The whole history

  /// - Parameter last: the content of each file at the end.
  func violations(last: [String: Content]) -> [Violation] {
    var all = found + overlaps() + contents() + unsteady()
    for (file, content) in last {
      if let violation = judge(content, file, at: .max) { all.append(violation) }
      guard !file.hasPrefix(SharedFiles.Kind.loose.rawValue) else { continue }
      all += (counters[file] ?? CounterHistory(file)).violations(last: content.count)
    }
    return all
  }

  /// Checks that two conflicting accesses run at the same time only if one asked to take over, and
  /// the other is notified.
  private func overlaps() -> [Violation] {
    var all: [Violation] = []
    var active: [Body] = []
    for body in bodies.sorted(by: { $0.begin < $1.begin }) {
      active.removeAll { $0.end < body.begin }
      for earlier in active where Self.conflict(earlier, body) {
        // An access may have been admitted, suspended and overtaken before its body began.
        let mayBe =
          body.takesOver && earlier.outcome != .done || earlier.takesOver && body.outcome != .done
        if !mayBe {
          all.append(
            Violation(
              .order,
              "access '\(body.token)' to '\(body.uses[0].name)' was let in while "
                + "'\(earlier.token)' was at work there"))
        }
      }
      active.append(body)
    }
    return all
  }

  private static func conflict(_ one: Body, _ other: Body) -> Bool {
    one.call.worker != other.call.worker
      && one.uses.contains { use in other.uses.contains { use.conflicts(with: $0) } }
  }

  /// Checks that an access wrote each content found, and that the content is as new as the last
  /// acknowledged write.
  private func contents() -> [Violation] {
    var all: [Violation] = []
    var done: [String: [(end: Int64, count: Int)]] = [:]
    for body in bodies where body.outcome == .done {
      for (place, use) in body.uses.enumerated() where use.way != .read && !body.after.isEmpty {
        done[use.file, default: []].append((body.call.end, body.after[place].count))
      }
    }
    var highest: [String: [(end: Int64, count: Int)]] = [:]
    for (file, moments) in done {
      var most = 0
      highest[file] = moments.sorted { $0.end < $1.end }.map { moment in
        most = max(most, moment.count)
        return (moment.end, most)
      }
    }
    for body in bodies {
      for (use, content) in zip(body.uses, body.before) {
        if let violation = judge(content, use.file, at: body.end) { all.append(violation) }
        guard use.kind != .loose, body.outcome == .done,
          let before = Self.last(highest[use.file] ?? [], before: body.begin),
          content.count < before
        else { continue }
        all.append(
          Violation(
            .order, "access '\(body.token)' found \(content.count) in '\(use.file)' after \(before)"
          ))
      }
    }
    return all
  }

  private static func last(_ moments: [(end: Int64, count: Int)], before time: Int64) -> Int? {
    var (low, high) = (0, moments.count)
    while low < high {
      let middle = (low + high) / 2
      if moments[middle].end < time { low = middle + 1 } else { high = middle }
    }
    return low == 0 ? nil : moments[low - 1].count
  }

  private func judge(_ content: Content, _ file: String, at time: Int64) -> Violation? {
    guard content != .empty else { return nil }
    guard let writer = writers[content.token], writer.files.contains(file), writer.begin <= time
    else { return Violation(.torn, "'\(content.token)' in '\(file)' was written by nobody") }
    guard writer.isVoid else { return nil }
    return Violation(
      .order, "'\(content.token)' is in '\(file)', though it was said that nothing was replaced")
  }

  /// Checks that a file stays unchanged while an access reads it.
  ///
  /// Exceptions: the reader is notified, or the reader asked to overtake suspended accesses, which
  /// may resume and write in the meantime.
  private func unsteady() -> [Violation] {
    let overtaken = Set(bodies.filter { $0.outcome != .done }.map(\.token))
    var all: [Violation] = []
    for body in bodies where body.outcome == .done && !body.after.isEmpty {
      for (place, use) in body.uses.enumerated()
      where use.way == .read && body.before[place] != body.after[place] {
        if body.takesOver && overtaken.contains(body.after[place].token) { continue }
        all.append(
          Violation(
            .order,
            "'\(use.file)' went from \(body.before[place].text) to \(body.after[place].text) while "
              + "access '\(body.token)' read it"))
      }
    }
    return all
  }
}
