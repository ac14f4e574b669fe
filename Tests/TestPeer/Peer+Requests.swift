import TestSupport
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs that send requests, reply, and start each other.
extension Peer {
  static func respond(_ container: String, _ name: String, _ manner: PeerJob.Responding) throws {
    let member = try meeting(container).join(as: name)
    let kept = Monitor<[Request]>([])
    let isFirst = Monitor(true)
    let responding = member.respond(toKind: nil) { request in
      if manner != .quietly { try? say("question \((try? request.value(as: Int.self)) ?? -1)") }
      switch manner {
      case .dying: try? Processes.send(.kill, to: Processes.current)
      case .never: return kept.withLock { $0.append(request) }
      case .stopping:
        let stops = isFirst.withLock { isFirst in
          defer { isFirst = false }
          return isFirst
        }
        if stops {
          try? Processes.send(.stop, to: Processes.current)
          // Another thread takes the signal, and the current thread may run on for a moment.
          let _: Void? = Monitor(()).wait(until: .now + .milliseconds(100)) { _ in nil }
        }
      default: break
      }
      do {
        try request.reply(try request.value(as: Int.self) * 2)
        if manner == .stopping { try say("answered") }
      } catch {
        try? say("\(error)", on: .error)
      }
    }
    try stay(member)
    responding.stop()
  }

  static func respondOnce(_ container: String, _ name: String) throws {
    let member = try meeting(container).join(as: name)
    let isDone = Monitor(false)
    let responding = member.respond(toKind: nil) { request in
      do {
        try request.reply(try request.value(as: Int.self) * 2)
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

  static func hear(_ container: String, _ name: String) throws {
    let member = try meeting(container).join(as: name)
    let watching = member.receiveImmediate { message in
      try? say("heard \((try? message.value(as: Int.self)) ?? -1) \(member.incarnation)")
    }
    try stay(member)
    watching.stop()
  }

  static func request(
    _ container: String, of peer: String, _ numbers: ClosedRange<Int>, as name: String?,
    milliseconds: Int
  ) throws {
    let shared = try meeting(container)
    let member = try name.map { try shared.join(as: $0) }
    let guest = name == nil ? try shared.guest() : nil
    let peer = member?.peer(peer) ?? guest!.peer(peer)
    try say("asking")
    for number in numbers {
      let answer = try peer.request(
        number, as: Int.self, kind: "Int", within: .milliseconds(milliseconds))
      guard answer == number * 2 else {
        throw WrongAnswer(description: "\(number) was answered with \(answer)")
      }
    }
    try say("done")
    member?.leave()
    guest?.leave()
  }

  static func wake(_ container: String, _ name: String, milliseconds: Int, stays: Bool) throws {
    var options = Options()
    options.lease = .milliseconds(50)
    options.wakeGrace = .seconds(2)
    let shared = try SharedContainer(directory: container, options: options)
    do throws(WormholeError) {
      try shared.peer(name).wake(within: .milliseconds(milliseconds))
    } catch {
      return try say("\(error.code.rawValue): \(error)")
    }
    try say("awake")
    if stays {
      waitToBeKilled()
    }
  }

  static func awaken(_ path: String, _ name: String, _ manner: PeerJob.Awakening) throws {
    let descriptors = try Descriptor.open(path: "/proc/self/fd", [.readOnly, .directory])
    let own = String(descriptors.rawValue)
    let numbers = try descriptors.names().filter { $0 != own }.sorted().joined(separator: " ")
    let file = try Descriptor.open(path: path, [.writeOnly, .append])
    try file.write(
      "\(Processes.current) descriptors \(numbers) in \(try Processes.workingDirectory()) "
        + "greeting \(Processes.environment("GREETING") ?? "none")\n")
    switch manner {
    case .crashing: Processes.exit(3)
    case .dying: try Processes.send(.kill, to: Processes.current)
    default: break
    }
    let shared = try meeting(Processes.environment("WORMHOLE_CONTAINER") ?? "")
    let member = manner == .neverJoining ? nil : try shared.join(as: name)
    if manner == .leaving { member?.leave() }
    var responding: Subscription?
    if manner == .answering, let member {
      // Late, as in programs that have other work at their start.
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(100)) { _ in nil }
      responding = member.respond(to: Int.self) { $0 * 2 }
    }
    try eventually("the test is over", within: .seconds(60)) {
      (try? Descriptor.open(path: path, [.readOnly])) == nil
    }
    responding?.stop()
    member?.leave()
  }

  static func hearOften(_ container: String, _ name: String, times: Int) throws {
    let shared = try meeting(container)
    for _ in 0..<times {
      let member = try shared.join(as: name)
      let heard = Monitor(0)
      let watching = member.receiveImmediate { message in
        try? say("heard \((try? message.value(as: Int.self)) ?? -1) \(member.incarnation)")
        heard.signal { $0 += 1 }
      }
      // Now and then the member leaves before it has handled all messages.
      _ = heard.wait(until: .now + .milliseconds(5)) { $0 >= 2 ? true : nil }
      member.leave()
      watching.stop()
    }
    try say("done")
  }
}

/// A reply to a different request.
private struct WrongAnswer: Error { let description: String }
