import TestSupport
import Wormhole
import WormholeSyscalls

/// Jobs that start subscriptions and later stop each subscription.
extension Peer {
  static func beginAndStop(_ container: String, rounds: Int) throws {
    let shared = try meeting(container)
    let member = try shared.join(as: "watch")
    func run(_ rounds: Int) throws {
      for round in 0..<rounds {
        let all = [
          try shared.channel("number", of: Int.self).watch { _ in },
          try shared.notice("ready").watch {},
          try shared.watchMembers { _ in },
          try member.peer("phone").watchReachability { _ in },
          try member.receive { _ in },
          try member.watchContexts { _ in },
          try member.watchOutcomes { _ in },
          member.receiveImmediate { _ in },
          member.respond(toKind: nil) { $0.refuse("no") },
        ]
        for one in all { one.stop() }
        // The member itself, and a subscription that is not stopped.
        guard round.isMultiple(of: 20) else { continue }
        _ = try shared.withMember(as: "phone") { try $0.receive { _ in } }
      }
    }
    // First the objects that are made once, and for the first few rounds.
    try run(rounds / 8)
    try say("\(try Toll())")
    try run(rounds)
    try say("\(try Toll())")
  }
}

/// What the process takes.
private struct Toll: CustomStringConvertible {
  let description: String

  init() throws {
    let status = try Descriptor.open(path: "/proc/self/status", [.readOnly]).contents()
    let lines = String(decoding: status, as: UTF8.self).split(separator: "\n")
    func number(_ name: String) -> Substring {
      let line = lines.first { $0.hasPrefix(name + ":") } ?? ""
      return line.split { !$0.isNumber }.first ?? ""
    }
    let open = try Descriptor.open(path: "/proc/self/fd", [.readOnly, .directory]).names().count
    description = "\(number("VmRSS")) \(open) \(number("Threads"))"
  }
}
