import CForking
import SharedContainer
import Syscalls
import TestSupport
import Wormhole

/// Jobs that are done as somebody else, whom the modes of files stop.
extension Peer {
  static func become(_ user: UInt32, _ group: UInt32, for job: PeerJob) throws {
    guard forking_become(user, group) == 0 else { Processes.exit(77) }
    try perform(job)
  }

  static func insist(
    _ container: String, from: String, to: String, other: String, until file: String
  ) throws {
    let member = try meeting(container).join(as: from)
    let (peer, other) = (member.peer(to), member.peer(other))
    var options = Wormhole.SendOptions()
    options.durability = .process
    var (number, attempt) = (1, 1)
    while (try? Descriptor.open(path: file, [.path])) == nil {
      do throws(WormholeError) {
        try peer.send(number, options)
        try? say("sent \(number)")
        number += 1
      } catch {
        try say("\(error.code): \(error)")
      }
      try other.send(attempt, options)
      attempt += 1
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(2)) { _ in nil }
    }
    member.leave()
    try say("tried \(attempt - 1)")
  }
}
