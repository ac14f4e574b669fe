/// The contexts that members have set for each other, and the contexts that have arrived.
struct ToldHistory {
  private struct Pair: Hashable {
    let from: String
    let to: String
  }

  private struct Told {
    /// The position of each token among all contexts that were set.
    var places: [String: Int] = [:]
    /// The last context that was certainly set.
    var sure: (place: Int, token: String)?
    /// The last context that arrived.
    var heard = -1
  }

  private var pairs: [Pair: Told] = [:]

  /// Adds a context that was set, or perhaps set; the calls of one worker are added in their order.
  mutating func add(_ token: String, to: String, _ call: MadeCall) {
    let pair = Pair(from: "w\(call.worker)", to: to)
    let place = pairs[pair, default: Told()].places.count
    pairs[pair, default: Told()].places[token] = place
    if call.result == .done { pairs[pair]?.sure = (place, token) }
  }

  /// Checks that each arriving context is as new as the previous one, or newer.
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

  /// Checks that the last context has arrived in the end, or a context that was perhaps set later.
  func close() -> [Violation] {
    pairs.compactMap { pair, told in
      guard let sure = told.sure, told.heard < sure.place else { return nil }
      return Violation(.lost, "'\(pair.to)' never heard '\(sure.token)' of '\(pair.from)'")
    }
  }
}
