#if FAULT_POINTS
  import WormholeLibC
  import Synchronization

  /// Faults on demand, before and after every system call of this module.
  ///
  /// A test passes rules to a child process in `WORMHOLE_FAULTS` (separated by `;`), and the child
  /// calls ``arm()``; without that call the child does not even read the environment. If
  /// `WORMHOLE_FAULT_TRACE` names a file, every call is written to the file, one line each, so that
  /// a test learns how many points an operation has. Within a process, ``with(_:_:)`` applies rules
  /// to the calls of the current thread alone, so that parallel tests do not disturb each other.
  package enum FaultPoints {
    private static let armed = Atomic<Bool>(false)
    private static let everywhere = Monitor(Plan())

    /// Rules with their counts, and the destination of the trace.
    struct Plan {
      var rules: [FaultRule] = []
      var seen: [Int] = []
      var calls = 0
      var trace: CInt = -1
      var names: [String]?
    }

    /// The plan of one thread.
    ///
    /// Only that thread accesses the plan.
    private final class Local {
      var plan: Plan
      init(_ plan: Plan) { self.plan = plan }
    }

    private static let key: pthread_key_t = {
      var key = pthread_key_t()
      precondition(pthread_key_create(&key, nil) == 0, "no thread-local storage left")
      return key
    }()

    /// Applies the rules of the environment from now on.
    package static func arm() {
      var plan = Plan()
      if let text = getenv("WORMHOLE_FAULTS") {
        for part in String(cString: text).split(separator: ";") {
          guard let rule = FaultRule(String(part)) else {
            preconditionFailure("WORMHOLE_FAULTS: '\(part)' is not a rule")
          }
          plan.rules.append(rule)
        }
      }
      if let path = getenv("WORMHOLE_FAULT_TRACE") {
        plan.trace = WormholeLibC.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
      }
      plan.seen = plan.rules.map { _ in 0 }
      guard !plan.rules.isEmpty || plan.trace >= 0 else { return }
      everywhere.withLock { $0 = plan }
      armed.store(true, ordering: .releasing)
    }

    /// Applies the rules to this thread's calls while the body runs; returns the calls of the
    /// thread.
    @discardableResult
    package static func with(
      _ rules: [FaultRule] = [], _ body: () throws -> Void
    ) rethrows -> [String] {
      let local = Local(
        Plan(rules: rules, seen: rules.map { _ in 0 }, names: []))
      let before = pthread_getspecific(key)
      pthread_setspecific(key, Unmanaged.passUnretained(local).toOpaque())
      active.add(1, ordering: .relaxed)
      defer {
        active.subtract(1, ordering: .relaxed)
        pthread_setspecific(key, before)
      }
      try body()
      return local.plan.names ?? []
    }

    /// The number of threads with a plan of their own: while it is 0, every thread skips the
    /// look-up.
    private static let active = Atomic<Int>(0)

    private static func consult(_ body: (inout Plan) -> FaultRule.Action?) -> FaultRule.Action? {
      if active.load(ordering: .relaxed) > 0, let pointer = pthread_getspecific(key) {
        let local = Unmanaged<Local>.fromOpaque(pointer).takeUnretainedValue()
        return body(&local.plan)
      }
      guard armed.load(ordering: .acquiring) else { return nil }
      return everywhere.withLock { body(&$0) }
    }

    /// Returns an error to report instead of making the call.
    static func before(
      _ call: Call, _ descriptor: CInt, _ name: UnsafePointer<CChar>?
    ) -> Errno? {
      if let error = Turnstile.pass(call, descriptor, name) { return error }
      let action = consult { plan in
        plan.note(call, descriptor, name)
        return plan.due(call, descriptor, name, .before, short: false)
      }
      guard let action else { return nil }
      if case .fail(let error) = action { return error }
      carryOut(action)
      return nil
    }

    static func after(_ call: Call, _ descriptor: CInt, _ name: UnsafePointer<CChar>?) {
      let action = consult { $0.due(call, descriptor, name, .after, short: false) }
      if let action { carryOut(action) }
    }

    /// Returns how many of `count` bytes a read or write may transfer.
    static func limit(_ call: Call, _ descriptor: CInt, _ count: Int) -> Int {
      guard count > 1 else { return count }
      let action = consult { $0.due(call, descriptor, nil, .before, short: true) }
      return action == nil ? count : max(1, count / 2)
    }

    private static func carryOut(_ action: FaultRule.Action) {
      switch action {
      case .kill: WormholeLibC.kill(WormholeLibC.getpid(), SIGKILL)
      // The signal goes to this very thread. If it went to the process, another thread could take
      // the signal, and this thread could make its call before the process is suspended.
      case .stop: WormholeLibC.raise(SIGSTOP)
      case .delay(let milliseconds): WormholeLibC.usleep(UInt32(milliseconds) * 1000)
      case .pause(let pause): pause.reach()
      case .fail, .short: break
      }
    }
  }

  extension FaultPoints.Plan {
    fileprivate mutating func note(
      _ call: Call, _ descriptor: CInt, _ name: UnsafePointer<CChar>?
    ) {
      calls += 1
      guard trace >= 0 || names != nil else { return }
      let path = fullPath(descriptor, name)
      names?.append("\(call.rawValue) \(path)")
      guard trace >= 0 else { return }
      let line = "\(calls) \(call.rawValue) \(path)\n"
      _ = line.withCString { WormholeLibC.write(trace, $0, strlen($0)) }
    }

    /// Counts the call against each matching rule; the first rule that is due applies.
    fileprivate mutating func due(
      _ call: Call, _ descriptor: CInt, _ name: UnsafePointer<CChar>?,
      _ moment: FaultRule.Moment, short: Bool
    ) -> FaultRule.Action? {
      var found: FaultRule.Action?
      for index in rules.indices {
        let rule = rules[index]
        guard rule.moment == moment, (rule.action == .short) == short,
          rule.call == nil || rule.call == call
        else { continue }
        if let part = rule.path, !contains(fullPath(descriptor, name), part) { continue }
        seen[index] += 1
        let isDue = rule.persistent ? seen[index] >= rule.number : seen[index] == rule.number
        if isDue, found == nil { found = rule.action }
      }
      return found
    }

    private func contains(_ text: String, _ part: String) -> Bool {
      let text = Array(text.utf8)
      let part = Array(part.utf8)
      guard part.count <= text.count else { return false }
      return (0...(text.count - part.count)).contains { text[$0...].starts(with: part) }
    }

    private func fullPath(_ descriptor: CInt, _ name: UnsafePointer<CChar>?) -> String {
      let last = name.map { String(cString: $0) }
      guard descriptor >= 0 else { return last ?? "" }
      let folder = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
        let count = WormholeLibC.readlink("/proc/self/fd/\(descriptor)", buffer.baseAddress!, 4096)
        let bytes = buffer.prefix(max(0, count)).map { UInt8(truncatingIfNeeded: $0) }
        return String(decoding: bytes, as: UTF8.self)
      }
      return last.map { folder + "/" + $0 } ?? folder
    }
  }
#endif
