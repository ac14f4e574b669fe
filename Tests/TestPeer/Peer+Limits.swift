import Foundation
import TestSupport
import Wormhole
import WormholeCTesting
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs that make blocking calls while the process may have few descriptors or threads.
extension Peer {
  static func callLimited(_ container: String, _ limit: PeerJob.Limit, isReady: Bool) throws {
    if isReady {
      let calls = try LimitedCalls(container)
      try calls.join()
      try set(limit, above: true)
      try calls.callAll()
    } else {
      // The system's one-time look-ups are made before: names, and the clock of the machine.
      try set(limit, above: false)
      let calls = try LimitedCalls(container)
      try calls.attempt("join") { try calls.join() }
      try calls.callAll()
    }
    try say("done")
  }

  private static func set(_ limit: PeerJob.Limit, above: Bool) throws {
    let isSet =
      switch limit {
      case .descriptors(let count):
        forking_limit_descriptors(
          UInt(count + (above ? try entries(of: "/proc/self/fd") - 1 : 0)))
      case .threads(let count):
        forking_limit_threads(UInt(count + (above ? try entries(of: "/proc/self/task") : 0)))
      }
    if isSet != 0 { throw Errno.notPermitted }
  }

  static func entries(of directory: String) throws -> Int {
    try Descriptor.open(path: directory, [.readOnly, .directory]).names().count
  }

  static func awaitLimited(_ container: String, descriptors: Int, isReady: Bool) throws {
    let isOver = Monitor(false)
    func wait() throws {
      let ended = isOver.wait(until: .now + .seconds(60)) { $0 ? true : nil }
      if ended == nil { throw Errno.interrupted }
      isOver.withLock { $0 = false }
    }
    if isReady {
      Task.detached { isOver.signal { $0 = true } }
      try wait()
    }
    try set(.descriptors(descriptors), above: isReady)
    // On this thread up to the first call that waits: tasks may not have run before.
    Task.immediate {
      do {
        try await LimitedCalls(container).awaitAll()
        try say("done")
      } catch {
        try? say("\(error)")
      }
      isOver.signal { $0 = true }
    }
    try wait()
  }

  static func listenOnQueue(_ container: String) throws {
    let member = try meeting(container).join(as: "limited")
    let queue = DispatchQueue(label: "program")
    try say("receive \(code { try member.receive(on: queue) { _ in } })")
    try say("contexts \(code { try member.watchContexts(on: queue) { _ in } })")
    try say("outcomes \(code { try member.watchOutcomes(on: queue) { _ in } })")
  }

  /// Begins a subscription while no descriptors are free for the threads of queues.
  private static func code(_ begin: () throws -> Subscription) -> String {
    let end = Monitor("begun")
    withoutPipes {
      do {
        try begin().stop()
      } catch {
        end.withLock { $0 = (error as? WormholeError).map { "\($0.code)" } ?? "\(error)" }
      }
    }
    return end.withLock { $0 }
  }

  /// The check for free descriptors makes three pipes, and no other step makes more than one.
  private static func withoutPipes(_ body: () -> Void) {
    #if FAULT_POINTS
      FaultPoints.with([FaultRule(.pipe, number: 3, .fail(.tooManyOpenFiles))], body)
    #else
      body()
    #endif
  }

  static func callOnQueue() throws {
    let (queue, calls) = (DispatchQueue(label: "program"), Monitor<[Int]>([]))
    try set(.descriptors(0), above: true)
    for number in 1...3 { queue.soon { calls.signal { $0.append(number) } } }
    _ = calls.wait(until: .now + .seconds(20)) { $0.count == 3 ? true : nil }
    try say("\(calls.withLock { $0 })")
  }

  static func openAgain(_ container: String, times: Int) throws {
    let threads = { try entries(of: "/proc/self/task") }
    try say("\(try threads())")
    for _ in 0..<times { try meeting(container).channel("number", of: Int.self).update { $0 = 1 } }
    try say("\(try threads())")
    do {
      let together = try (0..<20).map { _ in try meeting(container) }
      for one in together { try one.channel("number", of: Int.self).update { $0 = 1 } }
      try say("\(try threads())")
      withExtendedLifetime(together) {}
    }
    // Less than a thread of the keeper's rests.
    let deadline = Instant.now + .seconds(5)
    while try threads() > 1, Instant.now < deadline { Processes.yield() }
    try say("\(try threads())")
  }

  static func endAfterRefusedThread() throws {
    guard forking_refuse_threads() == 0 else { Processes.exit(77) }
    let failure = Errno.of { () throws(Errno) in try Thread("refused", {}).detach() }
    try say("too many: \(failure == .wouldBlock)")
    try Processes.send(.terminate, to: Processes.current)
    try say("the signal is blocked")
  }

  static func requestWhileBusy(_ container: String, of name: String) throws {
    let shared = try meeting(container)
    let member = try shared.join(as: "busy")
    let channel = shared.channel("busy", of: Int.self)
    let state = Monitor((busy: 0, isOver: false))
    // More than the library has threads.
    for _ in 0..<300 {
      try channel.watch { _ in
        state.signal { $0.busy += 1 }
        let _: Void? = state.wait(until: .now + .seconds(5)) { $0.isOver ? () : nil }
      }
    }
    try channel.put(1)
    let all: Void? = state.wait(until: .now + .seconds(20)) { $0.busy >= 256 ? () : nil }
    let begin = Instant.now
    do throws(WormholeError) {
      let _: Int = try member.peer(name).request(1, within: .milliseconds(200))
    } catch {
      let time = (Instant.now - begin).inNanoseconds / 1_000_000
      try say("\(all == nil ? "idle" : "busy") \(error.code) \(time)")
    }
    state.signal { $0.isOver = true }
    member.leave()
  }

  static func sendOddKinds(_ container: String, to name: String, asks: Bool) throws {
    let peer = try meeting(container).peer(name)
    for kind in [String(repeating: "k", count: 131_072), "zero\0byte", "usual"] {
      if asks {
        let end = Result { () throws(WormholeError) in
          try peer.request("hello", as: String.self, kind: kind)
        }
        switch end {
        case .success(let reply): try say(reply)
        case .failure(let error): try say("\(error.code): \(error.reason)")
        }
      } else {
        var options = SendOptions()
        options.kind = kind
        try peer.send("hello", options)
      }
    }
  }
}

/// The blocking calls, each made once; prints the duration and the result of each.
private final class LimitedCalls: Sendable {
  private let container: String
  private let shared: Monitor<SharedContainer?> = Monitor(nil)
  private let member: Monitor<Member?> = Monitor(nil)
  private static let timeout = Duration.milliseconds(200)

  init(_ container: String) throws { self.container = container }

  func attempt(_ name: String, _ body: () throws -> Void) throws {
    let begin = Instant.now
    var end = "done"
    do {
      try body()
    } catch let error as WormholeError {
      end = "\(error.code)"
    } catch {
      end = "\(error)"
    }
    try Peer.say("\(name) \((Instant.now - begin).inNanoseconds / 1_000_000) \(end)")
  }

  func join() throws {
    var options = Options()
    options.timeout = Self.timeout
    let shared = try SharedContainer(directory: container, options: options)
    self.shared.withLock { $0 = shared }
    let member = try shared.join(as: "limited")
    self.member.withLock { $0 = member }
  }

  func callAll() throws {
    if shared.withLock({ $0 }) == nil {
      try attempt("open") {
        let shared = try SharedContainer(directory: container)
        self.shared.withLock { $0 = shared }
      }
    }
    guard let shared = shared.withLock({ $0 }) else { return }
    try callValues(of: shared)
    try callMembers(of: shared)
    if let member = member.withLock({ $0 }) { try callMessages(of: member) }
    try callOthers(of: shared)
    try attempt("leave") { member.withLock { $0.take() }?.leave() }
    try attempt("close") { shared.close() }
  }

  func awaitAll() async throws {
    try attempt("open") { try join() }
    if shared.withLock({ $0 }) == nil {
      shared.withLock { $0 = try? SharedContainer(directory: container) }
    }
    guard let shared = shared.withLock({ $0 }) else { return }
    let (channel, peer) = (shared.channel("number", of: Int.self), shared.peer("never"))
    try await attempt("put") { try await channel.put(1) }
    try await attempt("update") { try await channel.update { $0 = 1 } }
    try await attempt("hold") { try await shared.lock("lock").hold(within: Self.timeout) {} }
    try await attempt("become a guest") { try await shared.guest().leave() }
    try await attempt("send") {
      _ = try await peer.send(1).waitForStatus(within: Self.timeout)
    }
    try await attempt("request") {
      _ = try await peer.request(1, as: Int.self, within: Self.timeout)
    }
    try await attempt("wake") { try await peer.wake(within: Self.timeout) }
    if let member = member.withLock({ $0.take() }) {
      try attempt("receive") {
        let receiving = try member.receive { (_: Message) async in }
        receiving.stop()
      }
      try await attempt("leave") { await member.leave() }
    }
    try await attempt("close") { await shared.close() }
  }

  private func attempt(_ name: String, _ body: () async throws -> Void) async throws {
    let begin = Instant.now
    var end = "done"
    do {
      try await body()
    } catch let error as WormholeError {
      end = "\(error.code)"
    } catch {
      end = "\(error)"
    }
    try Peer.say("\(name) \((Instant.now - begin).inNanoseconds / 1_000_000) \(end)")
  }

  private func callValues(of shared: SharedContainer) throws {
    let channel = shared.channel("number", of: Int.self)
    try attempt("put") { try channel.put(1) }
    try attempt("put for a power cut") { try channel.put(1, durability: .power) }
    try attempt("value") { _ = try channel.value }
    try attempt("update") { try channel.update { $0 = ($0 ?? 0) + 1 } }
    try attempt("clear") { try channel.clear() }
    try attempt("set") { try shared.defaults("suite").set(1, forKey: "key") }
    try attempt("hold") { try shared.lock("lock").hold(within: Self.timeout) {} }
    try attempt("post") { try shared.notice("notice").post() }
    try attempt("watch") { try channel.watch { _ in }.stop() }
    try attempt("watch a prefix") {
      try shared.watch(prefix: "n", of: Int.self) { (_: Snapshot<Int>) in }.stop()
    }
  }

  private func callMembers(of shared: SharedContainer) throws {
    try attempt("become a guest") { try shared.guest().leave() }
    try attempt("watch members") { try shared.watchMembers { _ in }.stop() }
    let peer = shared.peer("limited-other")
    try attempt("send") { try peer.send(1) }
    try attempt("send many") { try peer.send(contentsOf: [1, 2, 3]) }
    try attempt("send a file") { try peer.send(file: "\(container)/container.plist") }
    try attempt("request of nobody") { _ = try peer.request(1, as: Int.self, within: Self.timeout) }
    try attempt("request") {
      _ = try shared.peer("echo").request(1, as: Int.self, within: Self.timeout)
    }
    try attempt("send immediately") { try peer.sendImmediately(1, within: Self.timeout) }
    try attempt("register a start") {
      try shared.registerLaunch(of: "limited-other", program: "/bin/true")
    }
    try attempt("wake") { try peer.wake(within: Self.timeout) }
    try attempt("remove a start") { try shared.removeLaunch(of: "limited-other") }
  }

  private func callMessages(of member: Member) throws {
    let (own, echo) = (member.peer("limited"), member.peer("echo"))
    try attempt("send as a member") {
      let sent = try own.send(1)
      _ = sent.waitForEnd(until: .now + Self.timeout)
    }
    try attempt("set a context") { try own.setContext(1) }
    try attempt("request as a member") {
      _ = try echo.request(1, as: Int.self, within: Self.timeout)
    }
    try attempt("request without a reply") {
      _ = try member.peer("never").request(1, as: Int.self, within: Self.timeout)
    }
    let heard = Monitor(0)
    func wait() { _ = heard.wait(until: .now + Self.timeout) { $0 > 0 ? true : nil } }
    try attempt("receive") {
      let receiving = try member.receive { _ in heard.signal { $0 += 1 } }
      wait()
      receiving.stop()
    }
    try attempt("watch contexts") { try member.watchContexts { _ in }.stop() }
    try attempt("watch outcomes") { try member.watchOutcomes { _ in }.stop() }
    try attempt("respond") { member.respond(toKind: nil) { $0.refuse("no") }.stop() }
    try attempt("watch reachability") { try own.watchReachability { _ in }.stop() }
    try attempt("update info") { try member.update(info: ["a": "b"]) }
  }

  private func callOthers(of shared: SharedContainer) throws {
    let coordinator = Coordinator(Arbiters(.testing(lease: .seconds(1)), root: nil))
    let path = UserPath(container).parent + "/coordinated"
    try attempt("coordinate") { try coordinator.write(path, within: Self.timeout) { _ in } }
    try attempt("present") {
      try coordinator.present(path, as: Coordinator.Presenter()).stop()
    }
    try attempt("remove a member") { try shared.removeMember("limited-other") }
    try attempt("remove a channel") { try shared.removeChannel("number") }
    try attempt("remove defaults") { try shared.removeDefaults("suite") }
    try attempt("list") { _ = try shared.channels() }
  }
}
