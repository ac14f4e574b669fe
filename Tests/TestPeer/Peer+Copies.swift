import Foundation
import TestSupport
import Wormhole
import WormholeCLinux
import WormholeCTesting
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs that fork, as programs do that call `fork`.
extension Peer {
  /// The objects that a child inherits, for code that the C library calls.
  private struct Inheritance: Sendable {
    let file: OpenDirectory
    let folder: OpenDirectory
    let process = ProcessCopy.current
    /// Held for ever by a thread.
    let held = Monitor(())
    let one = OneForEachProcess { Monitor(0) }
    let coordinator = Coordinator()
    /// Has a call that never returns, and a call that waits.
    let queue = WorkQueue()
  }

  // Written once, before the process has another thread or a child.
  private nonisolated(unsafe) static var inheritance: Inheritance?

  // As above.
  private nonisolated(unsafe) static var purpose = ""

  static func inherit(_ directory: String, by way: PeerJob.Copying) throws {
    if way == .unwiped { linux_number_copies_by_hand() }
    let folder = OpenDirectory(
      try Descriptor.open(path: directory, [.readOnly, .directory]))
    let file = OpenDirectory(try folder.descriptor.open("file", [.readWrite]))
    guard try file.descriptor.tryLock(.exclusive) else { throw Errno.busy }
    let heirloom = Inheritance(file: file, folder: folder)
    inheritance = heirloom
    let isHeld = Monitor(false)
    try Thread("holding") {
      heirloom.held.withLock { _ in
        isHeld.signal { $0 = true }
        let _: Void? = Monitor(()).wait(until: nil) { _ in nil }
      }
    }.detach()
    _ = isHeld.wait(until: nil) { $0 ? true : nil }
    heirloom.queue.soon {
      isHeld.signal { $0 = false }
      let _: Void? = Monitor(()).wait(until: nil) { _ in nil }
    }
    _ = isHeld.wait(until: nil) { $0 ? nil : true }
    heirloom.queue.soon { try? say("a call of the parent's queue") }
    heirloom.one.current.withLock { $0 += 1 }
    purpose = heirloom.coordinator.purpose
    let byClone: Int32 = way == .clone ? 1 : 0
    guard forking_do(byClone, { try? Peer.useInheritance() }) == 0 else {
      throw Errno.noSuchProcess
    }
    try say(heirloom.process.isCurrent ? "the process" : "another process")
    // A child has its number before a call asks for the number, and its own child has a different
    // number.
    guard forking_do(byClone, { Peer.copyOfCopy() }) == 0 else { throw Errno.noSuchProcess }
  }

  private static func useInheritance() throws {
    let (file, folder) = (inheritance!.file, inheritance!.folder)
    try say(inheritance!.process.isCurrent ? "the process" : "another process")
    func tell(_ what: String, _ body: () throws(Errno) -> Void) throws {
      try say("\(what): \(Errno.of(body)?.name ?? "done")")
    }
    try tell("reading") { () throws(Errno) in _ = try file.descriptor.status() }
    try tell("locking") { () throws(Errno) in _ = try file.descriptor.tryLock(.exclusive) }
    try tell("giving back") { () throws(Errno) in try file.descriptor.unlock() }
    try tell("removing") { () throws(Errno) in try folder.descriptor.unlink("file") }
    try tell("duplicating") { () throws(Errno) in _ = try folder.descriptor.duplicate() }
    try inheritance!.held.withLock { _ in try say("a lock that was held: free") }
    let never: Void? = inheritance!.held.wait(until: nil) { _ in nil }
    try say("a wait for what never comes: \(never == nil ? "ended" : "in vain")")
    _ = inheritance!.queue.wait { try? say("a call of its queue") }
    let isOwn = inheritance!.one.current.withLock { $0 } == 0
    try say(isOwn ? "one of its own" : "another's")
    let mine = inheritance!.coordinator.purpose
    try say(mine != purpose && mine == inheritance!.coordinator.purpose ? "its purpose" : mine)
  }

  static func catchSignals() throws {
    let caught = Monitor(0)
    let signals = try CaughtSignals([Processes.Signal.terminate.number]) {
      caught.signal { $0 += 1 }
    }
    let outcome = forking_do(0) {
      try? Processes.send(.terminate, to: Processes.current)
    }
    try say(outcome == 0 ? "the copy has ended itself" : "the signal has ended the copy")
    try Processes.send(.terminate, to: Processes.current)
    let count = caught.wait(until: .now + .seconds(5)) { $0 > 0 ? $0 : nil }
    try say("caught: \(count ?? 0)")
    signals.end()
    try Processes.send(.terminate, to: Processes.current)
    try say("the signal is ignored")
  }

  static func catchInCopies() throws {
    let signals = try CaughtSignals([Processes.Signal.terminate.number]) {}
    let outcomes = [
      forking_do(0) {
        guard let other = try? CaughtSignals([Processes.Signal.hangUp.number], {}) else { return }
        try? Processes.send(.terminate, to: Processes.current)
        other.end()
      },
      forking_do(0) {
        try? CaughtSignals([Processes.Signal.terminate.number]) {}.end()
        try? Processes.send(.terminate, to: Processes.current)
      },
    ]
    for outcome in outcomes {
      try say(outcome == 0 ? "the copy has ended itself" : "the signal has ended the copy")
    }
    signals.end()
  }

  /// The system lets no process catch the stop signal.
  static func refuseSignals() throws {
    let (rounds, isSent) = (Monitor(0), Monitor(false))
    // The thread that awaits signals is the same in all rounds.
    let other = try CaughtSignals([Processes.Signal.hangUp.number]) {}
    let sender = try Thread("sender") {
      rounds.wait(until: nil) { $0 >= 100 ? () : nil }
      try? Processes.send(.terminate, to: Processes.current)
      isSent.signal { $0 = true }
    }
    let numbers: Set = [Processes.Signal.terminate.number, Processes.Signal.stop.number]
    while !isSent.withLock({ $0 }) {
      guard (try? CaughtSignals(numbers) {}) == nil else { throw Errno.notPermitted }
      rounds.signal { $0 += 1 }
    }
    sender.join()
    let never: Void? = isSent.wait(until: .now + .seconds(5)) { _ in nil }
    try say("the signal is lost: \(never == nil)")
    other.end()
  }

  static func handleSignal(isChained: Bool) throws {
    let number = Processes.Signal.terminate.number
    let signals = try CaughtSignals([number]) {}
    let result = isChained ? testing_chain_signal(number) : testing_keep_action(number)
    guard result == 0 else { throw Errno.notPermitted }
    signals.end()
    if !isChained {
      guard testing_put_back_action(number) == 0 else { throw Errno.notPermitted }
      // The action that the second catch finds is the handler of the first.
      try CaughtSignals([number]) {}.end()
      guard testing_put_back_action(number) == 0 else { throw Errno.notPermitted }
    }
    try Processes.send(.terminate, to: Processes.current)
    try say("handled: \(testing_chained_signals())")
    // The process's own handler is the earlier action of this catch.
    try CaughtSignals([number]) {}.end()
    try Processes.send(.terminate, to: Processes.current)
    try Processes.send(.terminate, to: Processes.current)
    try say("handled: \(testing_chained_signals())")
  }

  private static func copyOfCopy() {
    copied = .current
    let outcome = forking_do(0) {
      let isSame = Peer.copied == .current
      try? Peer.say("the copy's copy: \(isSame ? "the same" : "another process")")
    }
    Processes.exitAtOnce(outcome == 0 && copied == .current ? 0 : 1)
  }

  // As above.
  private nonisolated(unsafe) static var copied: ProcessCopy?
}

/// A process with eight busy threads, and all that a process may have of a container.
private final class BusyHousehold: Sendable {
  let shared: SharedContainer
  let member: Member
  let guest: Guest
  let watching: Subscription
  let names: FolderWatch
  /// A message that the member has claimed.
  let claimed = Monitor<Message?>(nil)
  /// How often the log has reported a message that was released without an outcome.
  let releases: Monitor<Int>
  /// A queue of the program, which makes no call in a forked child.
  let queue = DispatchQueue(label: "program")
  let container: Container

  init(_ path: String) throws {
    let releases = Monitor(0)
    self.releases = releases
    shared = try Peer.meeting(path) { entry in
      if entry.text.hasPrefix("a message was released") { releases.withLock { $0 += 1 } }
    }
    container = try Container.open(path, options: .testing())
    member = try shared.join(as: "phone")
    guest = try shared.guest()
    watching = try shared.channel("k0", of: Int.self).watch { _ in }
    names = try container.watchNames(in: .channels) { _ in }
  }

  /// Starts the work that lasts as long as the process; returns once all of the work is in
  /// progress.
  func begin() throws {
    let rounds = Monitor([Int](repeating: 0, count: 9))
    for index in 0..<8 {
      let channel = shared.channel("k\(index % 4)", of: Int.self)
      try Thread("busy") {
        while true {
          guard (try? channel.update(default: 0) { $0 += 1 }) != nil else { continue }
          rounds.signal { $0[index] += 1 }
        }
      }.detach()
    }
    let lock = try container.slot(.system, "held")
    try Thread("holding") {
      _ = try? lock.hold("hold") { _ in
        rounds.signal { $0[8] = 100 }
        let _: Void? = Monitor(()).wait(until: nil) { _ in nil }
      }
    }.detach()
    try member.receive(acknowledging: .explicit) { [claimed] message in
      claimed.signal { $0 = message }
    }
    try shared.peer("phone").send(1)
    _ = claimed.wait(until: nil) { $0 == nil ? nil : true }
    _ = rounds.wait(until: nil) { $0.allSatisfy { $0 >= 20 } ? true : nil }
    let isUsed = Monitor(false)
    queue.async { isUsed.signal { $0 = true } }
    _ = isUsed.wait(until: nil) { $0 ? true : nil }
  }
}

extension Peer {
  // Written before the copies are made, and then by each copy for itself.
  private nonisolated(unsafe) static var household: BusyHousehold?
  // Written before the children are forked, and only read afterwards.
  private nonisolated(unsafe) static var path = ""

  static func forkBusy(_ container: String, copies: Int) throws {
    path = container
    household = try BusyHousehold(path)
    try household!.begin()
    for _ in 0..<copies {
      guard forking_do(0, { Peer.inCopy { try Peer.useHousehold() } }) == 0 else {
        throw Errno.noSuchProcess
      }
    }
    let idle = forking_copy_after { Peer.household = nil }
    try say("\(idle)")
    waitToBeKilled()
  }

  private static func inCopy(_ body: () throws -> Void) {
    do {
      try body()
      Processes.exitAtOnce(0)
    } catch {
      try? say("in the copy: \(error)", on: .error)
      Processes.exitAtOnce(1)
    }
  }

  private static func useHousehold() throws {
    func refused(_ what: String, operation: String? = nil, _ body: () throws -> Void) throws {
      do {
        try body()
        throw Complaint("\(what) was done")
      } catch let error as WormholeError {
        let isNamed = error.operation == operation ?? error.operation
        guard error.code == .forked, isNamed else { throw Complaint("\(what): \(error)") }
      }
    }
    let old = household!
    try refused("reading") { _ = try old.shared.channel("k0", of: Int.self).value }
    try refused("putting") { try old.shared.channel("k0", of: Int.self).put(1) }
    try refused("putting to another") { try old.shared.channel("new", of: Int.self).put(1) }
    try refused("listing") { _ = try old.shared.channels() }
    try refused("watching") { _ = try old.shared.channel("k0", of: Int.self).watch { _ in } }
    try refused("holding") { _ = try old.container.slot(.system, "held").hold("hold") { _ in } }
    try refused("updating info") { try old.member.update(info: ["a": "b"]) }
    try refused("receiving") { _ = try old.member.receive { (_: Message) in } }
    try refused("sending") { _ = try old.member.peer("phone").send(1) }
    try refused("sending immediately", operation: "send message to") {
      try old.guest.peer("phone").sendImmediately(1, within: .seconds(1))
    }
    try refused("asking", operation: "get a reply from") {
      _ = try old.guest.peer("phone").request(1, as: Int.self, within: .seconds(1))
    }
    try refused("joining") { _ = try old.shared.join(as: "other") }
    // The parent may still acknowledge the message.
    _ = old.claimed.withLock { $0.take() }
    guard old.releases.withLock({ $0 }) == 0 else { throw Complaint("the message has failed") }
    let queue = old.queue
    household = nil
    let fresh = try meeting(path)
    try useQueue(queue, fresh)
    let channel = fresh.channel("copies", of: Int.self)
    let heard = Monitor(0)
    let watching = try channel.watch { change in heard.signal { $0 = change.value ?? 0 } }
    let sum = try channel.update(default: 0) { $0 += 1 }
    let isHeard = heard.wait(until: .now + .seconds(20)) { $0 >= sum ? true : nil }
    guard isHeard == true else { throw Complaint("deaf") }
    watching.stop()
    guard try channel.value == sum else { throw Complaint("not put") }
  }

  /// A queue of the program makes the library's calls, at once and later.
  private static func useQueue(_ queue: DispatchQueue, _ container: SharedContainer) throws {
    let code = Monitor(WormholeError.Code?.none)
    container.peer("phone").request(1, as: Int.self, on: queue) { end in
      if case .failure(let error) = end { code.signal { $0 = error.code } }
    }
    let end = code.wait(until: .now + .seconds(20)) { $0 }
    guard end == .forked else { throw Complaint("a request ended with \(end as Any)") }
    let isCalled = Monitor(false)
    queue.later(.now + .milliseconds(1)) { isCalled.signal { $0 = true } }
    let isLate = isCalled.wait(until: .now + .seconds(20)) { $0 ? false : nil } ?? true
    guard !isLate else { throw Complaint("no later call") }
  }
}

private struct Complaint: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
