import SharedContainer
import Synchronization
import Syscalls
import TestSupport

/// Jobs that listen.
extension Peer {
  /// `watch <container> <channel> <until>`: says each number that it hears of, until it is that
  /// one, and whether it is told by the kernel or polls.
  static let watch = Job("watch") { arguments in
    var options = ContainerOptions.testing()
    options.environment.log = { _, words in try? StandardStream.error.write(words + "\n") }
    let container = try Container.open(arguments[0], options: options)
    let slot = try container.slot(.channels, arguments[1])
    let last = Int(arguments[2])!
    let heard = Monitor(-1)
    let watch = try slot.watch {
      let number = (try? slot.number()) ?? -1
      heard.signal { before in
        if number != before { try? StandardStream.output.write("heard \(number)\n") }
        before = number
      }
    }
    if watch.isPolling {
      try StandardStream.output.write("polling\n")
      try eventually("inotify serves it") { !watch.isPolling }
    }
    try StandardStream.output.write("told\n")
    guard heard.wait(until: .now + patience, { $0 == last ? true : nil }) != nil else {
      throw TooLate(description: "\(last) was not heard")
    }
    watch.stop()
  }

  /// `names <container> <until>`: says which channels come and go, until one of that name comes.
  static let names = Job("names") { arguments in
    let container = try Container.open(arguments[0], options: .testing())
    let isOver = Monitor(false)
    let watch = try container.watchNames(in: .channels) { change in
      switch change {
      case .came(let name): try? StandardStream.output.write("came \(name)\n")
      case .went(let name): try? StandardStream.output.write("went \(name)\n")
      }
      if change == .came(arguments[1]) { isOver.signal { $0 = true } }
    }
    try StandardStream.output.write("watching\n")
    guard isOver.wait(until: .now + patience, { $0 ? true : nil }) != nil else {
      throw TooLate(description: "\(arguments[1]) did not come")
    }
    watch.stop()
  }
}
