import TestSupport
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

extension Pair {
  /// Sends numbers, each by itself.
  @discardableResult
  func send(
    _ numbers: some Sequence<Int>, _ adjust: (inout SendOptions) -> Void = { _ in }
  ) throws -> [Sent] {
    try numbers.map { try phone.send($0, SendOptions.quick(adjust)) }
  }

  /// The names in a part of a member's directory.
  ///
  /// Without `room`, the file that records how much space is taken.
  func files(_ part: String, of name: String = "watch") throws -> [String] {
    try meeting.names("members/\(name)/\(part)").filter { $0 != "room" }
  }
}

extension Meeting {
  func names(_ folder: String) throws -> [String] {
    try Descriptor.open(path: path + "/" + folder, [.readOnly, .directory]).names().sorted()
  }

  func folder(_ folder: String) throws -> Descriptor {
    try Descriptor.open(path: path + "/" + folder, [.readOnly, .directory])
  }
}

extension SendOptions {
  /// Without a sync, because only tests of power cuts need to wait for syncs.
  static func quick(
    _ adjust: (inout SendOptions) -> Void = { _ in }
  ) -> SendOptions {
    var options = SendOptions()
    options.durability = .process
    adjust(&options)
    return options
  }
}

/// A delivery: the number, the attempt, and whether the message may have been delivered before.
struct Handed: Equatable, Sendable, CustomStringConvertible {
  let number: Int
  let attempt: Int
  let isMarked: Bool

  init(_ number: Int, _ attempt: Int = 1, marked: Bool? = nil) {
    self.number = number
    self.attempt = attempt
    isMarked = marked ?? (attempt > 1)
  }

  init(_ message: Message) throws {
    self.init(try message.value(), message.attempt, marked: message.isRedelivered)
  }

  var description: String { "\(number)~\(attempt)\(isMarked ? "!" : "")" }
}

extension Member {
  /// Acknowledges all arriving messages and records the deliveries.
  func note(_ heard: Heard<Handed>, kinds: Set<String>? = nil) throws -> Subscription {
    try receive(kinds: kinds) { heard.add(try Handed($0)) }
  }

  /// Claims so many messages and does not acknowledge them.
  func take(_ count: Int) throws -> [Message] {
    let taken = Heard<Message>()
    let own = Monitor<Subscription?>(nil)
    let receiving = try receive(acknowledging: .explicit) { message in
      taken.add(message)
      if taken.count == count { own.wait(until: .now + patience) { $0 }?.stop() }
    }
    own.signal { $0 = receiving }
    defer { own.withLock { $0 = nil } }
    try taken.wait("\(count) in hand") { $0.count >= count }
    receiving.stop()
    return taken.all
  }
}
