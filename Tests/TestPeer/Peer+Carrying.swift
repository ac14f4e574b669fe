import Foundation
import TestSupport
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Peer {
  /// Carries messages from a container to another one, and their outcomes back, until it is killed.
  static func carry(
    _ here: String, _ there: String, _ members: [String], _ channels: [String]
  ) throws {
    let carrier = try LocalCarrier(from: meeting(here), to: meeting(there), members, channels)
    let thread = try Thread("carrier") {
      do {
        try carrier.run()
      } catch {
        try? say("\(error)", on: .error)
        Processes.exit(70)
      }
    }
    waitToBeKilled()
    carrier.stop()
    thread.join()
  }
}

/// A carrier between two containers of one machine, as small as it can be: it stands for two
/// bridges and the servers between them.
///
/// In `here` lies a record, which binds a number to names of messages before they are claimed. In
/// `there` lies a cursor with the number of the last record received, and with the names under
/// which its messages are delivered. Both are replaced by one rename each. Whichever carrier finds
/// them continues, also `Fixtures/python/carry.py`, which uses the same two files.
final class LocalCarrier: Sendable {
  private let here: Carrier
  private let there: Carrier
  private let out: OpenDirectory
  private let staged: OpenDirectory
  private let storage: (here: Container, there: Container)
  private let news = Monitor((isNew: true, isOver: false))
  private let proxies: [String: Proxy]
  private let peers: [String: Wormhole.Peer]
  private let channels: [Channel<PropertyListValue>]
  private let desk: ChangeDesk
  private let senders = Monitor<[Carrier.Resident: Proxy]>([:])

  private static let (hereName, thereName) = ("here", "there")
  private static let (recordName, cursorName) = ("record.plist", "cursor.plist")

  init(
    from here: SharedContainer, to there: SharedContainer, _ members: [String],
    _ channels: [String]
  ) throws {
    storage = (here.storage, there.storage)
    let (carrier, other) = (try Carrier(here), try Carrier(there))
    (self.here, self.there) = (carrier, other)
    self.channels = channels.map { there.channel($0) }
    let news = news
    desk = try carrier.takeChanges { change, answer in
      do {
        answer(try other.make(change, for: Self.hereName))
      } catch {
        answer(Carrier.ChannelAnswer(.refused, reason: "\(error)"))
      }
      news.signal { $0.isNew = true }
    }
    out = try here.storage.bridge(["out", Self.thereName])
    staged = try there.storage.bridge(["in", Self.hereName])
    var proxies: [String: Proxy] = [:]
    for name in members {
      proxies[name] = try self.here.proxy(of: .member(name), on: Self.thereName)
    }
    self.proxies = proxies
    peers = Dictionary(uniqueKeysWithValues: members.map { ($0, there.peer($0)) })
  }

  /// Carries until ``stop()`` is called on another thread.
  func run() throws {
    let notice: @Sendable (Set<Carrier.Resident>) -> Void = { [news] _ in
      news.signal { $0.isNew = true }
    }
    let (watch, back) = (CarrierWatch(here, notice), CarrierWatch(there, notice))
    for proxy in proxies.values { try watch.add(proxy) }
    for channel in channels { try channel.watch { _ in notice([]) } }
    for peer in peers.values { try peer.watchReachability { _ in notice([]) } }
    for proxy in try there.proxies() where proxy.machine == Self.hereName {
      senders.withLock { $0[proxy.resident] = proxy }
      try back.add(proxy)
    }
    try Peer.say("carrying")
    var pause = Duration.seconds(3600)
    while true {
      let isOver = news.wait(until: .now + pause) { news -> Bool? in
        guard news.isNew || news.isOver else { return nil }
        news.isNew = false
        return news.isOver
      }
      if isOver == true { break }
      do {
        try run(back)
        pause = .seconds(3600)
      } catch {
        try? Peer.say("\(error)", on: .error)
        pause = .milliseconds(20)
      }
    }
    watch.stop()
    back.stop()
    desk.stop()
  }

  func stop() { news.signal { $0.isOver = true } }

  private func run(_ back: CarrierWatch) throws {
    for channel in channels {
      try here.store(
        there.content(of: channel.name), of: channel.name, from: Self.thereName, changesTo: desk)
    }
    while try carry(back) {}
    try cancel()
    try tellOutcomes()
    try showWhoRuns()
  }

  // MARK: Messages

  private struct Entry: Codable {
    var to: String
    var name: String
    var delivered: String?
  }

  private struct Record: Codable {
    var number: Int
    var entries: [Entry]
  }

  private func read(
    _ name: String, _ directory: OpenDirectory, _ storage: Container
  ) throws -> Record? {
    try storage.read(name, in: directory).map { try BinaryDecoder().decode(Record.self, from: $0) }
  }

  private func write(
    _ record: Record, _ name: String, _ directory: OpenDirectory, _ storage: Container
  ) throws {
    let bytes = try BinaryEncoder().encode(record)
    try storage.replace(name, in: directory.descriptor, by: bytes, sync: false)
  }

  /// Carries the messages of one record; false if nothing waits.
  private func carry(_ back: CarrierWatch) throws -> Bool {
    let received =
      try read(Self.cursorName, staged, storage.there) ?? Record(number: 0, entries: [])
    guard let record = try read(Self.recordName, out, storage.here) ?? next(received.number) else {
      return false
    }
    let cursor = try record.number == received.number ? received : receive(record, back)
    for entry in cursor.entries {
      let name = MessageName(entry.delivered!)!
      _ = try there.deliver(entry.name, in: staged, as: name, to: .member(entry.to))
    }
    for entry in record.entries {
      let name = MessageName(entry.name)!
      if !name.wantsReceipt { _ = try proxies[entry.to]!.settle(name, .delivered) }
    }
    try out.descriptor.unlink(Self.recordName)
    return true
  }

  /// Binds the next number to the messages that wait.
  private func next(_ last: Int) throws -> Record? {
    var record = Record(number: last + 1, entries: [])
    for (name, proxy) in proxies {
      let waiting = try proxy.waiting(atMost: 64)
      record.entries += waiting.map { Entry(to: name, name: $0.text) }
    }
    guard !record.entries.isEmpty else { return nil }
    try write(record, Self.recordName, out, storage.here)
    return record
  }

  private func receive(_ record: Record, _ back: CarrierWatch) throws -> Record {
    var cursor = Record(number: record.number, entries: [])
    for entry in record.entries {
      let (name, proxy) = (MessageName(entry.name)!, proxies[entry.to]!)
      _ = try proxy.claim(name)
      // Otherwise its sender has cancelled it.
      guard let message = try proxy.read(name) else { continue }
      if let expires = message.expires, expires < Date() {
        _ = try proxy.settle(name, .expired)
        continue
      }
      if name.wantsReceipt, let sender = name.sender { try makeProxy(of: sender, back) }
      let origin = PropertyListValue.dictionary(
        ["to": .string(entry.to), "name": .string(entry.name)])
      let bytes = try message.delivered(from: origin, expires: message.expires)
      try storage.there.replace(entry.name, in: staged.descriptor, by: bytes, sync: false)
      var done = entry
      done.delivered = try there.arrivalName(of: name).text
      cursor.entries.append(done)
    }
    try write(cursor, Self.cursorName, staged, storage.there)
    return cursor
  }

  private func makeProxy(of sender: MessageName.Sender, _ back: CarrierWatch) throws {
    let resident: Carrier.Resident =
      switch sender {
      case .member(let name): .member(name)
      case .guest(let digits): .guest(Incarnation(rawValue: digits)!)
      }
    guard senders.withLock({ $0[resident] }) == nil else { return }
    let proxy = try there.proxy(of: resident, on: Self.hereName)
    senders.withLock { $0[resident] = proxy }
    try back.add(proxy)
  }

  // MARK: Presence

  private func showWhoRuns() throws {
    for (name, peer) in peers {
      let isRunning = try peer.reachability == .running
      if isRunning, let profile = try peer.profile {
        try proxies[name]!.appear(
          as: profile.incarnation, program: profile.program, since: profile.joinedAt,
          info: profile.info)
      } else {
        proxies[name]!.disappear()
      }
    }
  }

  // MARK: Back

  private func cancel() throws {
    for (name, proxy) in proxies {
      for sent in try proxy.cancellations() { _ = try there.cancel(sent, to: .member(name)) }
    }
  }

  private func tellOutcomes() throws {
    for sender in senders.withLock({ Array($0.values) }) {
      for outcome in try sender.outcomes() {
        let origin = outcome.origin?.dictionaryValue
        guard let to = origin?["to"]?.stringValue, let proxy = proxies[to],
          let name = origin?["name"]?.stringValue.flatMap({ MessageName($0) })
        else { continue }
        _ = try proxy.settle(name, outcome.status)
        try sender.forget(outcome.name, outcome.status)
      }
    }
  }
}
