/// Where expectations are.
extension Rule {
  /// Swift Testing finds the test of an expectation by the current task.
  ///
  /// A callback on a queue or a separate thread has no task: an expectation that fails there
  /// belongs to no test. Such a callback collects values, and the test checks them; or the callback
  /// hands the values to the test's thread with a `Relay`.
  static let expectations = Rule("expectations in callbacks") { file in
    guard file.isSwift, file.isTest, file.room != "ExamplePackage",
      file.code.contains(where: { $0.utf8.contains(UInt8(ascii: "#")) || $0.contains("Issue.") })
    else { return [] }
    var brackets = Brackets()
    return file.code.enumerated().flatMap { index, line in
      brackets.callbacks(of: line).map {
        (index + 1, "an expectation in a callback of '\($0)' belongs to no test")
      }
    }
  }

  /// Functions and types that call their closure on a thread of their own.
  fileprivate static let callers: Set<Substring> = [
    "Thread", "async", "asyncAfter", "receive", "respond", "watch", "watchContexts",
    "receiveImmediate", "watchNames", "watchOutcomes", "watchReachability", "watchLaunches",
    "observe", "CFNotificationCenterAddObserver", "addOperation", "detached",
  ]

  /// Properties whose closure is called on such a thread, beside properties named `onSomething`.
  fileprivate static let properties: Set<Substring> = [
    "relinquish", "save", "changed", "moved", "arriving",
  ]
}

/// The open brackets, and the functions or properties that the closures among them are given to.
private struct Brackets {
  private var open: [Substring] = []
  // For each open brace, the callback around it; empty without a callback.
  private var callbacks: [Substring] = [""]
  private var word: Substring = ""
  private var closed: Substring = ""
  private var previous = UInt8(ascii: " ")

  /// The callbacks that the expectations of the next line are in.
  mutating func callbacks(of line: String) -> [Substring] {
    var found: [Substring] = []
    var rest = line[...].utf8
    var isFunction = false
    while let byte = rest.first {
      if let next = Word.prefix(of: rest) {
        word = next
        isFunction = isFunction || word == "func" || word == "init"
        let isExpectation =
          previous == UInt8(ascii: "#") && (word == "expect" || word == "require")
          || previous == UInt8(ascii: ".") && word == "record"
        if isExpectation, let callback = callbacks.last, !callback.isEmpty {
          found.append(callback)
        }
        previous = UInt8(ascii: "a")
        rest = rest[next.endIndex...]
        continue
      }
      if byte != UInt8(ascii: " ") {
        take(byte, isFunction: isFunction)
        previous = byte
      }
      rest.removeFirst()
    }
    return found
  }

  private mutating func take(_ byte: UInt8, isFunction: Bool) {
    switch byte {
    case UInt8(ascii: "("): open.append(previous == UInt8(ascii: "a") ? word : "")
    case UInt8(ascii: ")"): closed = open.popLast() ?? ""
    case UInt8(ascii: "{"):
      // The parentheses of a call around the closure are counted again inside the closure.
      callbacks.append(isFunction ? "" : callback ?? callbacks.last ?? "")
      open.append("")
    case UInt8(ascii: "}"):
      if callbacks.count > 1 { callbacks.removeLast() }
      _ = open.popLast()
    default: break
    }
  }

  /// The function or property that a closure beginning here is a callback of; nil if this thread
  /// calls the closure.
  private var callback: Substring? {
    switch previous {
    case UInt8(ascii: "="):
      let isProperty = Rule.properties.contains(word)
      let second = word.utf8.dropFirst(2).first ?? UInt8(ascii: "a")
      return isProperty || word.hasPrefix("on") && second < UInt8(ascii: "a") ? word : nil
    case UInt8(ascii: ")"): return Rule.callers.contains(closed) ? closed : nil
    case UInt8(ascii: "a"): return Rule.callers.contains(word) ? word : nil
    case UInt8(ascii: "("), UInt8(ascii: ","), UInt8(ascii: ":"):
      return open.last.flatMap { Rule.callers.contains($0) ? $0 : nil }
    default: return nil
    }
  }
}
