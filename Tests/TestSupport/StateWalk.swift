/// A model of a state machine and its surroundings, for a ``StateWalk``.
package protocol WalkedState: Hashable {
  /// The states after each event that can be next; none at the end.
  var successors: [Self] { get }
  /// What must never be so.
  var violation: String? { get }
}

/// All states that are reachable from one state, until one violates a promise.
package struct StateWalk<State: WalkedState> {
  /// The states, each with the state before it.
  private var before: [State: State] = [:]
  /// The violation, and the path to it.
  package private(set) var violations: [String] = []

  package var count: Int { before.count }

  package func contains(where condition: (State) -> Bool) -> Bool {
    before.keys.contains(where: condition)
  }

  package init(from start: State) {
    var open = [(start, start)]
    while let (state, last) = open.popLast(), violations.isEmpty {
      guard before[state] == nil else { continue }
      before[state] = last
      if let violation = state.violation { violations = [violation] + path(to: state) }
      open += state.successors.map { ($0, state) }
    }
  }

  private func path(to end: State) -> [String] {
    var path = ["\(end)"]
    var state = end
    while let last = before[state], last != state {
      path.append("\(last)")
      state = last
    }
    return path.reversed()
  }
}
