import TestSupport
import Wormhole
import WormholeSyscalls

/// Jobs on channels, through the module that users import.
extension Peer {
  static func count(_ container: String, _ channel: String, times: Int) throws {
    let sum = try shared(container).channel(channel, of: Int.self)
    for _ in 0..<times { try sum.update(default: 0) { $0 += 1 } }
  }

  static func countAloud(_ container: String, _ channel: String) throws {
    let sum = try shared(container).channel(channel, of: Int.self)
    while true {
      try sum.update(default: 0) { $0 += 1 }
      try say("1")
    }
  }

  static func put(_ container: String, _ channel: String, _ numbers: ClosedRange<Int>) throws {
    let channel = try shared(container).channel(channel, of: Int.self)
    for number in numbers { try channel.put(number) }
  }

  static func putInGroup(_ group: String, _ channel: String, _ number: Int) throws {
    try SharedContainer(group: group).channel(channel).put(number)
  }

  static func stopUpdating(_ container: String, _ channel: String) throws {
    let sum = try shared(container).channel(channel, of: Int.self)
    try sum.update(default: 0) { value in
      try Processes.send(.stop, to: Processes.current)
      value += 1
    }
  }

  static func post(_ container: String, _ notice: String) throws {
    try shared(container).notice(notice).post()
  }

  static func set(_ container: String, _ suite: String, prefix: String, count: Int) throws {
    let defaults = try shared(container).defaults(suite)
    for index in 0..<count {
      try defaults.set(index, forKey: prefix + "\(index)")
    }
  }

  static func shared(_ path: String) throws -> SharedContainer {
    var options = Options()
    options.lease = .milliseconds(50)
    options.sharing = ContainerOptions.testing().sharing
    return try SharedContainer(directory: path, options: options)
  }
}
