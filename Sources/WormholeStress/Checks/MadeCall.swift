extension Journal.Operation {
  fileprivate var isAccess: Bool {
    if case .access = self { true } else { false }
  }
}

/// A call of a worker's with its time: from before it was begun until after it had returned.
struct MadeCall: Sendable {
  let worker: Int
  let operation: Journal.Operation
  let begin: Int64
  /// `Int64.max` if its process ended in it.
  let end: Int64
  /// Nil if its process ended in it.
  let result: Journal.Result?
  /// When it had come to its end for sure: if its process ended in it, when the next one began.
  var over = Int64.max
  /// Whether it was made in the body of another one.
  var isNested = false

  /// How long it took, without the time for which its process was stopped; it has ended.
  func time(without pauses: [ClosedRange<Int64>]) -> Int64 {
    pauses.reduce(end - begin) { time, pause in
      time - max(0, min(pause.upperBound, end) - max(pause.lowerBound, begin))
    }
  }

  /// The calls of one journal, in their order.
  static func calls(of worker: Int, in entries: [Journal.Entry]) -> [MadeCall] {
    var calls: [MadeCall] = []
    // The one that was begun last is the last; only accesses have others in them.
    var open: [(operation: Journal.Operation, time: Int64)] = []
    func end(_ time: Int64, _ result: Journal.Result?, over: Int64) {
      guard let (operation, begin) = open.popLast() else { return }
      calls.append(
        MadeCall(
          worker: worker, operation: operation, begin: begin, end: time, result: result, over: over,
          isNested: !open.isEmpty))
    }
    func cutOff(_ time: Int64 = .max) { while !open.isEmpty { end(.max, nil, over: time) } }
    for entry in entries {
      switch entry.event {
      case .life: cutOff(entry.time)
      case .begin(let operation):
        if !operation.isAccess || open.last?.operation.isAccess != true { cutOff(entry.time) }
        open.append((operation, entry.time))
      case .end(let result): end(entry.time, result, over: entry.time)
      default: break
      }
    }
    cutOff()
    return calls
  }
}
