#if FAULT_POINTS
  /// A rule for a fault: the call concerned, the failure, and the moment.
  ///
  /// Written as `call[~path][@n][+]:moment:action`:
  ///
  ///     rename@3:before:kill          die just before the third rename
  ///     fsync@1+:before:fail=EIO      every sync fails from the first on
  ///     any@17:after:stop             stop just after the seventeenth call of any kind
  ///     open~value.plist:before:delay=50
  ///     write@2:before:short          write only half of the bytes of the second write
  ///
  /// `~path` selects the calls whose path contains that text, `@n` the n-th of the matching calls
  /// (the first if left out), `+` that call and all later ones.
  package struct FaultRule: Sendable, Equatable {
    package enum Moment: String, Sendable { case before, after }

    package enum Action: Sendable, Equatable {
      case fail(Errno)
      case short
      case kill
      case stop
      case delay(milliseconds: Int)
      /// Waits until a test of the same process lets the call go on.
      case pause(FaultPause)
    }

    package var call: Call?
    package var path: String?
    package var number = 1
    package var persistent = false
    package var moment = Moment.before
    package var action: Action

    package init(
      _ call: Call?, path: String? = nil, number: Int = 1, persistent: Bool = false,
      moment: Moment = .before, _ action: Action
    ) {
      self.call = call
      self.path = path
      self.number = number
      self.persistent = persistent
      self.moment = moment
      self.action = action
    }
  }

  extension FaultRule: LosslessStringConvertible {
    package init?(_ text: String) {
      let parts = text.split(separator: ":", omittingEmptySubsequences: false)
      guard parts.count == 3, let moment = Moment(rawValue: String(parts[1])),
        let action = Action(String(parts[2]))
      else { return nil }
      self.init(nil, moment: moment, action)
      var place = parts[0]
      if place.last == "+" {
        persistent = true
        place = place.dropLast()
      }
      if let at = place.lastIndex(of: "@") {
        guard let number = Int(place[place.index(after: at)...]), number > 0 else { return nil }
        self.number = number
        place = place[..<at]
      }
      if let tilde = place.firstIndex(of: "~") {
        path = String(place[place.index(after: tilde)...])
        place = place[..<tilde]
      }
      if place != "any" {
        guard let call = Call(rawValue: String(place)) else { return nil }
        self.call = call
      }
      if moment == .after {
        switch action {
        case .fail, .short: return nil  // A finished call can no longer fail.
        case .kill, .stop, .delay, .pause: break
        }
      }
    }

    package var description: String {
      let place = (call?.rawValue ?? "any") + (path.map { "~" + $0 } ?? "")
      return "\(place)@\(number)\(persistent ? "+" : ""):\(moment.rawValue):\(action)"
    }
  }

  extension FaultRule.Action: LosslessStringConvertible {
    package init?(_ text: String) {
      switch text {
      case "short": self = .short
      case "kill": self = .kill
      case "stop": self = .stop
      default:
        let sides = text.split(separator: "=", maxSplits: 1)
        guard sides.count == 2 else { return nil }
        if sides[0] == "fail", let error = Errno(name: sides[1]) {
          self = .fail(error)
        } else if sides[0] == "delay", let time = Int(sides[1]), time >= 0 {
          self = .delay(milliseconds: time)
        } else {
          return nil
        }
      }
    }

    package var description: String {
      switch self {
      case .fail(let error): "fail=\(error.name)"
      case .short: "short"
      case .kill: "kill"
      case .stop: "stop"
      case .delay(let milliseconds): "delay=\(milliseconds)"
      case .pause: "pause"
      }
    }
  }

  /// A place in a thread's calls where the thread waits for the test that has given it the rule.
  ///
  /// A delay is a guess: on a loaded machine it ends before the others have done their part.
  package final class FaultPause: Sendable, Equatable {
    private let state = Monitor((isReached: false, isOpen: false))

    package init() {}

    /// Whether the thread has come to its call.
    package var isReached: Bool { state.withLock { $0.isReached } }

    /// Lets the thread, and every later one, make its call.
    package func open() { state.signal { $0.isOpen = true } }

    func reach() {
      state.signal { $0.isReached = true }
      _ = state.wait(until: .now + .seconds(60)) { $0.isOpen ? true : nil }
    }

    package static func == (left: FaultPause, right: FaultPause) -> Bool { left === right }
  }
#endif
