import TestSupport
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Jobs on channels that are removed.
extension Peer {
  static func mark(_ container: String, _ channel: String, log: String, end: String) throws {
    let container = try Container.open(container, options: .testing())
    let slot = try container.slot(.channels, channel)
    let file = try Descriptor.open(
      path: log, [.writeOnly, .create, .append], mode: 0o600)
    while (try? Descriptor.open(path: end, [.readOnly])) == nil {
      let mark = try slot.mark()
      try file.write("\(mark.count) \(mark.number)\n")
    }
  }

  static func remove(_ container: String, _ channel: String, times: Int) throws {
    let container = try Container.open(container, options: .testing())
    for _ in 0..<times {
      let wasThere = try container.slot(.channels, channel).remove {
        try? say("clears \($0.count) \($0.number)")
      }
      try say(wasThere ? "removed" : "none")
    }
  }
}
