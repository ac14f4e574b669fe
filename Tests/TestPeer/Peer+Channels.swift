import Syscalls
import TestSupport
import Wormhole

/// Jobs on channels, through the module that users import.
extension Peer {
  /// `count <container> <channel> <times>`: adds 1 to a channel that many times.
  static let count = Job("count") { arguments in
    let sum = try hole(arguments[0]).channel(arguments[1], of: Int.self)
    for _ in 0..<Int(arguments[2])! { try sum.update(default: 0) { $0 += 1 } }
  }

  /// `count-aloud <container> <channel>`: adds 1 again and again, and says a line for each.
  static let countAloud = Job("count-aloud") { arguments in
    let sum = try hole(arguments[0]).channel(arguments[1], of: Int.self)
    while true {
      try sum.update(default: 0) { $0 += 1 }
      try say("1")
    }
  }

  /// `put <container> <channel> <first> <last>`: puts the numbers, one after the other.
  static let put = Job("put") { arguments in
    let channel = try hole(arguments[0]).channel(arguments[1], of: Int.self)
    for number in Int(arguments[2])!...Int(arguments[3])! { try channel.put(number) }
  }

  /// `put-in-group <group> <channel> <number>`: puts a number in the container of a group.
  static let putInGroup = Job("put-in-group") { arguments in
    try Wormhole(group: arguments[0]).channel(arguments[1]).put(Int(arguments[2])!)
  }

  /// `stop-updating <container> <channel>`: stops itself inside an update that adds 1.
  static let stopUpdating = Job("stop-updating") { arguments in
    let sum = try hole(arguments[0]).channel(arguments[1], of: Int.self)
    try sum.update(default: 0) { value in
      try Processes.send(.stop, to: Processes.current)
      value += 1
    }
  }

  /// `post <container> <notice>`: posts a notice.
  static let post = Job("post") { arguments in
    try hole(arguments[0]).notice(arguments[1]).post()
  }

  /// `set <container> <suite> <prefix> <count>`: sets as many keys to their number.
  static let set = Job("set") { arguments in
    let defaults = try hole(arguments[0]).defaults(arguments[1])
    for index in 0..<Int(arguments[3])! {
      try defaults.set(index, forKey: arguments[2] + "\(index)")
    }
  }

  static func hole(_ path: String) throws -> Wormhole {
    var options = Wormhole.Options()
    options.lease = .milliseconds(50)
    return try Wormhole(directory: path, options: options)
  }
}
