/// A call of a worker's with its time: from before it was begun until after it had returned.
struct MadeCall: Sendable {
  let worker: Int
  let operation: Journal.Operation
  let begin: Int64
  /// `Int64.max` if its process ended in it.
  let end: Int64
  /// Nil if its process ended in it.
  let result: Journal.Result?

  /// The calls of one journal, in their order.
  static func calls(of worker: Int, in entries: [Journal.Entry]) -> [MadeCall] {
    var calls: [MadeCall] = []
    var current: (operation: Journal.Operation, time: Int64)?
    func cutOff() {
      guard let (operation, time) = current else { return }
      calls.append(
        MadeCall(worker: worker, operation: operation, begin: time, end: .max, result: nil))
      current = nil
    }
    for entry in entries {
      switch entry.event {
      case .life: cutOff()
      case .begin(let operation):
        cutOff()
        current = (operation, entry.time)
      case .end(let result):
        guard let (operation, time) = current else { continue }
        calls.append(
          MadeCall(
            worker: worker, operation: operation, begin: time, end: entry.time, result: result))
        current = nil
      default: break
      }
    }
    cutOff()
    return calls
  }
}
