extension Journal.Operation {
  fileprivate var isAccess: Bool {
    if case .access = self { true } else { false }
  }
}

/// A call of a worker with its interval: from before its start until after its return.
struct MadeCall: Sendable {
  let worker: Int
  let operation: Journal.Operation
  let begin: Int64
  /// `Int64.max` if the process ended in the call.
  let end: Int64
  /// Nil if the process ended in the call.
  let result: Journal.Result?
  /// The time at which the call was certainly over: if the process ended in the call, the start of
  /// the next process.
  var over = Int64.max
  /// Whether the call was made in the body of another call.
  var isNested = false

  /// Returns the duration of an ended call, without the time for which the process was suspended.
  func time(without pauses: [ClosedRange<Int64>]) -> Int64 {
    pauses.reduce(end - begin) { time, pause in
      time - max(0, min(pause.upperBound, end) - max(pause.lowerBound, begin))
    }
  }

  /// Returns the calls of one journal, in their order.
  static func calls(of worker: Int, in entries: [Journal.Entry]) -> [MadeCall] {
    var calls: [MadeCall] = []
    // The call that began last ends first; only accesses contain other calls.
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
