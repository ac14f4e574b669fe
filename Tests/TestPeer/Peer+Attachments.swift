import SharedContainer
import Syscalls
import TestSupport
import Wormhole

/// Jobs of members that send each other files.
extension Peer {
  /// `send-file <container> <path> copying|moving process|power`: sends a file to `watch` without
  /// joining, and says so.
  static let sendFile = Job("send-file") { arguments in
    var options = Wormhole.SendOptions()
    options.durability = arguments[3] == "power" ? .power : .process
    try Wormhole(directory: arguments[0]).peer("watch").send(
      file: arguments[1], metadata: "it", by: arguments[2] == "moving" ? .moving : .copying,
      options)
    try say("sent")
  }

  /// `receive-file <container> <path> take|leave`: joins as `watch`, takes one file to a path if it
  /// is to, acknowledges it, says so, and leaves.
  static let receiveFile = Job("receive-file") { arguments in
    let member = try Wormhole(directory: arguments[0]).join(as: "watch")
    let ended = Monitor<(any Error)?>(nil)
    let isDone = Monitor(false)
    let receiving = try member.receive(acknowledging: .explicit) { message in
      do {
        if arguments[2] == "take", let file = message.file, try file.isThere {
          try file.take(to: arguments[1])
        }
        try message.acknowledge()
        try say("acknowledged")
      } catch {
        ended.withLock { $0 = error }
      }
      isDone.signal { $0 = true }
    }
    let met = isDone.wait(until: .now + .seconds(20)) { $0 ? true : nil }
    receiving.stop()
    member.leave()
    if let error = ended.withLock({ $0 }) { throw error }
    if met == nil { throw TooLate(description: "no message came") }
  }

  /// `file-memory <container> <path>`: sends itself a file, receives and copies it, and says by how
  /// many kilobytes the most memory it ever had has grown.
  static let fileMemory = Job("file-memory") { arguments in
    let hole = try Wormhole(directory: arguments[0])
    let member = try hole.join(as: "watch")
    let isDone = Monitor(false)
    let receiving = try member.receive { message in
      if arguments.count > 2 { try message.file?.take(to: arguments[2]) }
      isDone.signal { $0 = true }
    }
    let before = try mostMemory()
    var options = Wormhole.SendOptions()
    options.durability = .process
    try member.peer("watch").send(file: arguments[1], options)
    _ = isDone.wait(until: .now + .seconds(60)) { $0 ? true : nil }
    receiving.stop()
    try say("\(try mostMemory() - before)")
  }

  /// The most memory that this process has had, in kilobytes.
  private static func mostMemory() throws -> Int {
    let bytes = try Descriptor.open(path: "/proc/self/status", [.readOnly]).contents()
    let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
      .first { $0.hasPrefix("VmHWM:") }
    return Int(line?.split(whereSeparator: { !$0.isNumber }).first ?? "") ?? 0
  }
}
