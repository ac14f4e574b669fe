/// What members have told each other of their state, and what has been heard.
struct ToldHistory {
  private struct Pair: Hashable {
    let from: String
    let to: String
  }

  private struct Told {
    /// The place of each token among all that were told.
    var places: [String: Int] = [:]
    /// The last that was told for sure.
    var sure: (place: Int, token: String)?
    /// The last that was heard.
    var heard = -1
  }

  private var pairs: [Pair: Told] = [:]

  /// A state was told, or perhaps; all calls of one worker come in their order.
  mutating func add(_ token: String, to: String, _ call: MadeCall) {
    let pair = Pair(from: "w\(call.worker)", to: to)
    let place = pairs[pair, default: Told()].places.count
    pairs[pair, default: Told()].places[token] = place
    if call.result == .done { pairs[pair]?.sure = (place, token) }
  }

  /// Each of those that come is as new as the last one, or newer.
  mutating func hear(_ token: String, from: String, as name: String) -> [Violation] {
    let pair = Pair(from: from, to: name)
    guard let place = pairs[pair]?.places[token] else {
      return [Violation(.torn, "'\(name)' heard '\(token)', which '\(from)' has not told it")]
    }
    let last = pairs[pair]?.heard ?? -1
    pairs[pair]?.heard = max(place, last)
    guard last > place else { return [] }
    return [Violation(.order, "'\(name)' heard '\(token)' of '\(from)' after what it told later")]
  }

  /// In the end the last one was heard, or one that was perhaps told after it.
  func close() -> [Violation] {
    pairs.compactMap { pair, told in
      guard let sure = told.sure, told.heard < sure.place else { return nil }
      return Violation(.lost, "'\(pair.to)' never heard '\(sure.token)' of '\(pair.from)'")
    }
  }
}
