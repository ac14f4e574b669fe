import TestSupport
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs of members that send files to each other.
extension Peer {
  static func sendFile(
    _ container: String, _ file: String, moves: Bool, durability: Durability
  ) throws {
    var options = SendOptions()
    options.durability = durability
    try SharedContainer(directory: container).peer("watch").send(
      file: file, metadata: "it", mode: moves ? .moving : .copying,
      options)
    try say("sent")
  }

  static func receiveFile(_ container: String, to path: String, takes: Bool) throws {
    let member = try SharedContainer(directory: container).join(as: "watch")
    let ended = Monitor<(any Error)?>(nil)
    let isDone = Monitor(false)
    let receiving = try member.receive(acknowledging: .explicit) { message in
      do {
        if takes, let file = message.file, try file.exists {
          try file.move(to: path)
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

  static func fileMemory(_ container: String, _ file: String, to path: String?) throws {
    let shared = try SharedContainer(directory: container)
    let member = try shared.join(as: "watch")
    let isDone = Monitor(false)
    let receiving = try member.receive { message in
      if let path { try message.file?.move(to: path) }
      isDone.signal { $0 = true }
    }
    let before = try mostMemory()
    var options = SendOptions()
    options.durability = .process
    try member.peer("watch").send(file: file, options)
    _ = isDone.wait(until: .now + .seconds(60)) { $0 ? true : nil }
    receiving.stop()
    try say("\(try mostMemory() - before)")
  }

  /// The peak memory of this process, in kilobytes.
  static func mostMemory() throws -> Int {
    let bytes = try Descriptor.open(path: "/proc/self/status", [.readOnly]).contents()
    let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
      .first { $0.hasPrefix("VmHWM:") }
    return Int(line?.split(whereSeparator: { !$0.isNumber }).first ?? "") ?? 0
  }
}
