import SharedContainer
import Syscalls
import TestSupport
import Wormhole

/// Jobs that ask, answer, and start each other.
extension Peer {
  /// `respond <container> <name> [<what>]`: joins, says as which incarnation, and answers each
  /// number with its double; says each question that it begins with.
  ///
  /// What else it does: `stop` stops itself before the first answer, `kill` kills itself; `stay`
  /// never answers; `quiet` says nothing of questions.
  static let respond = Job("respond") { arguments in
    let what = arguments.count > 2 ? arguments[2] : ""
    let member = try meeting(arguments[0]).join(as: arguments[1])
    let kept = Monitor<[Wormhole.Request]>([])
    let isFirst = Monitor(true)
    let responding = member.respond(toKind: nil) { request in
      if what != "quiet" { try? say("question \((try? request.value(as: Int.self)) ?? -1)") }
      switch what {
      case "kill": try? Processes.send(.kill, to: Processes.current)
      case "stay": return kept.withLock { $0.append(request) }
      case "stop":
        let stops = isFirst.withLock { isFirst in
          defer { isFirst = false }
          return isFirst
        }
        if stops {
          try? Processes.send(.stop, to: Processes.current)
          // Another thread takes the signal, and this one may run on for a moment.
          let _: Void? = Monitor(()).wait(until: .now + .milliseconds(100)) { _ in nil }
        }
      default: break
      }
      do {
        try request.answer(try request.value(as: Int.self) * 2)
        if what == "stop" { try say("answered") }
      } catch {
        try? say("\(error)", on: .error)
      }
    }
    try stay(member)
    responding.stop()
  }

  /// `respond-once <container> <name>`: joins, says so, answers one request with its double,
  /// leaves, and says so; leaves without, if none comes in three seconds.
  static let respondOnce = Job("respond-once") { arguments in
    let member = try meeting(arguments[0]).join(as: arguments[1])
    let isDone = Monitor(false)
    let responding = member.respond(toKind: nil) { request in
      do {
        try request.answer(try request.value(as: Int.self) * 2)
      } catch {
        request.refuse("\(error)")
      }
      isDone.signal { $0 = true }
    }
    try say("joined")
    _ = isDone.wait(until: .now + .seconds(3)) { $0 ? true : nil }
    responding.stop()
    member.leave()
    try say("left")
  }

  /// `hear <container> <name>`: joins, says as which incarnation, and says each immediate message.
  static let hear = Job("hear") { arguments in
    let member = try meeting(arguments[0]).join(as: arguments[1])
    let watching = member.watchImmediate { message in
      try? say("heard \((try? message.value(as: Int.self)) ?? -1) \(member.incarnation)")
    }
    try stay(member)
    watching.stop()
  }

  /// `request <container> <peer> <first> <last> [<name>] [<milliseconds>]`: asks all the numbers,
  /// one after the other, and checks that each is answered with its double.
  ///
  /// As a member of that name, or as a guest if the name is `-`.
  static let request = Job("request") { arguments in
    let hole = try meeting(arguments[0])
    let name = arguments.count > 4 ? arguments[4] : "-"
    let time = arguments.count > 5 ? Int(arguments[5])! : 30_000
    let guest = name == "-" ? try hole.guest() : nil
    let member = name == "-" ? nil : try hole.join(as: name)
    let peer = member?.peer(arguments[1]) ?? guest!.peer(arguments[1])
    try say("asking")
    for number in Int(arguments[2])!...Int(arguments[3])! {
      let answer = try peer.requestAndWait(
        number, as: Int.self, kind: "Int", within: .milliseconds(time))
      guard answer == number * 2 else {
        throw WrongAnswer(description: "\(number) was answered with \(answer)")
      }
    }
    try say("done")
    member?.leave()
    guest?.leave()
  }

  /// `wake <container> <name> <milliseconds>`: wakes a member, and says how that ended.
  static let wake = Job("wake") { arguments in
    var options = Wormhole.Options()
    options.lease = .milliseconds(50)
    options.wakeGrace = .seconds(2)
    let hole = try Wormhole(directory: arguments[0], options: options)
    do throws(WormholeError) {
      try hole.peer(arguments[1]).wake(within: .milliseconds(Int(arguments[2])!))
    } catch {
      return try say("\(error.code.rawValue): \(error)")
    }
    try say("awake")
    if arguments.count > 3 {
      let _: Void? = Monitor(()).wait(until: .now + .seconds(60)) { _ in nil }
    }
  }

  /// `awaken <file> <name> [<what>]`: what is started by those that wake; adds a line to the file
  /// that says what it was born with, joins, and stays for as long as the file is there.
  ///
  /// What else: `crash` ends with code 3 before it joins, `die` by a signal, `never` does not join,
  /// `leave` leaves as soon as it has joined, `answer` answers each number with its double.
  static let awaken = Job("awaken") { arguments in
    let what = arguments.count > 2 ? arguments[2] : ""
    let descriptors = try Descriptor.open(path: "/proc/self/fd", [.readOnly, .directory])
    let own = String(descriptors.rawValue)
    let numbers = try descriptors.names().filter { $0 != own }.sorted().joined(separator: " ")
    let file = try Descriptor.open(path: arguments[0], [.writeOnly, .append])
    try file.write(
      "\(Processes.current) descriptors \(numbers) in \(try Processes.workingDirectory()) "
        + "greeting \(Processes.environment("GREETING") ?? "none")\n")
    switch what {
    case "crash": Processes.exit(3)
    case "die": try Processes.send(.kill, to: Processes.current)
    default: break
    }
    let hole = try meeting(Processes.environment("WORMHOLE_CONTAINER") ?? "")
    let member = what == "never" ? nil : try hole.join(as: arguments[1])
    if what == "leave" { member?.leave() }
    var responding: Wormhole.Responding?
    if what == "answer", let member {
      // Late, as programs are that have other things to set up.
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(100)) { _ in nil }
      responding = member.respond(to: Int.self) { $0 * 2 }
    }
    try eventually("the test is over", within: .seconds(60)) {
      (try? Descriptor.open(path: arguments[0], [.readOnly])) == nil
    }
    responding?.stop()
    member?.leave()
  }

  /// `hear-often <container> <name> <count>`: joins and leaves that often, and says each immediate
  /// message with the incarnation that has heard it.
  static let hearOften = Job("hear-often") { arguments in
    let hole = try meeting(arguments[0])
    for _ in 0..<Int(arguments[2])! {
      let member = try hole.join(as: arguments[1])
      let heard = Monitor(0)
      let watching = member.watchImmediate { message in
        try? say("heard \((try? message.value(as: Int.self)) ?? -1) \(member.incarnation)")
        heard.signal { $0 += 1 }
      }
      // Now and then it goes with messages before it that it has not come to.
      _ = heard.wait(until: .now + .milliseconds(5)) { $0 >= 2 ? true : nil }
      member.leave()
      watching.stop()
    }
    try say("done")
  }
}

/// An answer to another question.
private struct WrongAnswer: Error { let description: String }
