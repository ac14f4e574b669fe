import CForking
import SharedContainer
import Syscalls
import TestSupport
import Wormhole

/// Jobs that are done as somebody else, whom the modes of files stop.
extension Peer {
  /// `as <user> <job> …`: does a job as that user, and as the group of that number.
  ///
  /// Only root can; another ends with code 77.
  static let asUser = Job("as") { arguments in
    guard forking_become(UInt32(arguments[0])!) == 0 else { Processes.exit(77) }
    try perform(Array(arguments.dropFirst()))
  }

  /// `insist <container> <from> <to> <other> <file>`: sends the numbers from 1 on, each again until
  /// it is sent, and between all attempts one to the other, until the file is there.
  ///
  /// Says each that is sent, and why one is not.
  static let insist = Job("insist") { arguments in
    let member = try meeting(arguments[0]).join(as: arguments[1])
    let (peer, other) = (member.peer(arguments[2]), member.peer(arguments[3]))
    var options = Wormhole.SendOptions()
    options.durability = .process
    var (number, attempt) = (1, 1)
    while (try? Descriptor.open(path: arguments[4], [.path])) == nil {
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
