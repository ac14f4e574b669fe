internal import WormholeContainerStorage
internal import WormholeSyscalls

extension LinkPlan: LosslessStringConvertible {
  /// The plan as a line of text, which ``init(_:)`` reads.
  ///
  ///     seed=7 drop=0.1 delay=0.2:10ms-500ms reorder=0.1 to=watch at=3:drop,5:delay:2s
  public var description: String {
    let plain = LinkPlan(seed: seed)
    var words = ["seed=\(seed)"]
    if drop > 0 { words.append("drop=\(drop)") }
    if delay > 0 || delays != plain.delays {
      words.append("delay=\(delay):\(text(delays.lowerBound))-\(text(delays.upperBound))")
    }
    if duplicate > 0 { words.append("duplicate=\(duplicate)") }
    if reorder > 0 { words.append("reorder=\(reorder)") }
    if let receiver { words.append("to=\((try? EscapedName.escape(receiver)) ?? "")") }
    if rediscovery != plain.rediscovery { words.append("rediscovery=\(text(rediscovery))") }
    if window != plain.window { words.append("window=\(text(window))") }
    if !faults.isEmpty {
      let listed = faults.sorted { $0.key < $1.key }.map { "\($0.key):\(text($0.value))" }
      words.append("at=" + listed.joined(separator: ","))
    }
    return words.joined(separator: " ")
  }

  /// Reads a plan from its line; nil for any other text.
  public init?(_ description: String) {
    self.init()
    for word in description.split(separator: " ") {
      let parts = word.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, take(String(parts[0]), parts[1]) else { return nil }
    }
    let shares = [drop, delay, duplicate, reorder]
    // Shares of together 1 may have a sum of a little more, because they are rounded.
    guard shares.allSatisfy({ $0 >= 0 }), shares.reduce(0, +) < 1 + 1e-9 else { return nil }
  }

  /// - Returns: whether the key and the value are valid.
  private mutating func take(_ key: String, _ value: Substring) -> Bool {
    func share(_ path: WritableKeyPath<LinkPlan, Double>) -> Bool {
      guard let share = Double(value) else { return false }
      self[keyPath: path] = share
      return true
    }
    func duration(_ path: WritableKeyPath<LinkPlan, Duration>) -> Bool {
      guard let duration = readDuration(value) else { return false }
      self[keyPath: path] = duration
      return true
    }
    switch key {
    case "seed":
      guard let seed = UInt64(value) else { return false }
      self.seed = seed
      return true
    case "drop": return share(\.drop)
    case "duplicate": return share(\.duplicate)
    case "reorder": return share(\.reorder)
    case "delay": return takeDelay(value)
    case "rediscovery": return duration(\.rediscovery)
    case "window": return duration(\.window)
    case "to":
      receiver = EscapedName.unescape(String(value))
      return receiver != nil
    case "at": return takeFaults(value)
    default: return false
    }
  }

  private mutating func takeDelay(_ value: Substring) -> Bool {
    let parts = value.split(separator: ":")
    guard parts.count == 2, let share = Double(parts[0]) else { return false }
    let ends = parts[1].split(separator: "-").map(readDuration)
    guard ends.count == 2, let low = ends[0], let high = ends[1], low <= high else { return false }
    delay = share
    delays = low...high
    return true
  }

  private mutating func takeFaults(_ value: Substring) -> Bool {
    for entry in value.split(separator: ",") {
      let parts = entry.split(separator: ":")
      guard parts.count >= 2, let number = Int(parts[0]), number > 0 else { return false }
      switch (parts[1], parts.count) {
      case ("drop", 2): faults[number] = .drop
      case ("duplicate", 2): faults[number] = .duplicate
      case ("reorder", 2): faults[number] = .reorder
      case ("delay", 3):
        guard let duration = readDuration(parts[2]) else { return false }
        faults[number] = .delay(duration)
      default: return false
      }
    }
    return true
  }
}

private func text(_ fault: LinkPlan.Fault) -> String {
  switch fault {
  case .drop: "drop"
  case .delay(let duration): "delay:\(text(duration))"
  case .duplicate: "duplicate"
  case .reorder: "reorder"
  }
}

/// From the largest unit to the smallest.
private let units: [(name: String, nanoseconds: Int64)] = [
  ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000), ("ns", 1),
]

private func text(_ duration: Duration) -> String {
  let nanoseconds = duration.inNanoseconds
  let unit = units.first { nanoseconds % $0.nanoseconds == 0 } ?? units[3]
  return "\(nanoseconds / unit.nanoseconds)\(unit.name)"
}

private func readDuration(_ text: Substring) -> Duration? {
  let digits = text.prefix { $0.isASCII && $0.isNumber }
  guard let number = Int64(digits),
    let unit = units.first(where: { $0.name == text.dropFirst(digits.count) })
  else { return nil }
  let (nanoseconds, overflow) = number.multipliedReportingOverflow(by: unit.nanoseconds)
  return overflow ? nil : .nanoseconds(nanoseconds)
}
