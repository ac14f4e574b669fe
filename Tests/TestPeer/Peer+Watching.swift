import Synchronization
import TestSupport
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs that listen.
extension Peer {
  static func watch(_ container: String, _ channel: String, until last: Int) throws {
    var options = ContainerOptions.testing()
    options.environment.log = { try? StandardStream.error.write($0.text + "\n") }
    let container = try Container.open(container, options: options)
    let slot = try container.slot(.channels, channel)
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
      try eventually("inotify serves it, or all is heard") {
        !watch.isPolling || heard.withLock { $0 } == last
      }
    }
    if !watch.isPolling { try StandardStream.output.write("told\n") }
    guard heard.wait(until: .now + patience, { $0 == last ? true : nil }) != nil else {
      throw TooLate(description: "\(last) was not heard")
    }
    watch.stop()
  }

  static func watchMany(_ container: String, count: Int) throws {
    let container = try Container.open(container, options: .testing())
    let changed = Monitor(Set<Int>())
    let watches = try (0..<count).map { number in
      let slot = try container.slot(.channels, "\(number)")
      let before = try slot.number()
      return try slot.watch {
        guard let now = try? slot.number(), now != before else { return }
        changed.signal { _ = $0.insert(number) }
      }
    }
    let open = try Descriptor.open(path: "/proc/self/fd", [.readOnly, .directory]).names().count
    try StandardStream.output.write("descriptors \(open)\n")
    guard changed.wait(until: .now + patience, { $0.count == 3 ? true : nil }) != nil else {
      throw TooLate(description: "not all changes were heard, but \(changed.withLock { $0 })")
    }
    for watch in watches { watch.stop() }
  }

  static func names(_ container: String, until last: String) throws {
    let container = try Container.open(container, options: .testing())
    let isOver = Monitor(false)
    let watch = try container.watchNames(in: .channels) { change in
      switch change {
      case .came(let name): try? StandardStream.output.write("came \(name)\n")
      case .went(let name): try? StandardStream.output.write("went \(name)\n")
      }
      if change == .came(last) { isOver.signal { $0 = true } }
    }
    try StandardStream.output.write("watching\n")
    guard isOver.wait(until: .now + patience, { $0 ? true : nil }) != nil else {
      throw TooLate(description: "\(last) did not come")
    }
    watch.stop()
  }
}
