import Foundation
import WatchConnectivity
import Wormhole
import WormholeDropIns
import WormholePropertyLists
import WormholeSyscalls

/// A message of WatchConnectivity and its reply, against a request and its reply.
struct MessageWithReply: Benchmark {
  static let name = "message-with-reply"
  static let summary = "a message of WatchConnectivity and its reply, against a request"
  static let isPaired = true
  // At most twice as long as the baseline.
  static func requiredRatio(_ size: Size) -> Double? { 0.5 }

  private let sides: BothSides
  private let question: PropertyListValue = ["film": "Metropolis", "seats": 2]

  init(size: Size) throws {
    sides = try BothSides()
    sides.second.respond(toKind: nil) { request in
      try? request.reply(["seats": 2] as PropertyListValue)
    }
    for _ in 0..<20 {
      try ours()
      try baseline()
    }
  }

  func ours() throws {
    let end = Monitor<Bool?>(nil)
    sides.phone.sendMessage(["film": "Metropolis", "seats": 2]) { _ in
      end.signal { $0 = true }
    } errorHandler: { _ in
      end.signal { $0 = false }
    }
    guard end.wait(until: .now + .seconds(5), { $0 }) == true else {
      throw BenchmarkError.nothingMeasured(Self.name)
    }
  }

  func baseline() throws {
    let end = Monitor<Bool?>(nil)
    sides.peer.request(question, as: PropertyListValue.self, kind: "question") { result in
      end.signal { $0 = (try? result.get()) != nil }
    }
    guard end.wait(until: .now + .seconds(5), { $0 }) == true else {
      throw BenchmarkError.nothingMeasured(Self.name)
    }
  }
}

/// User infos of WatchConnectivity until the delegate has all of them, against as many messages.
///
/// Outcomes are not waited for: they are withheld until their sender had time to store closures. On
/// a thread of its own that is a tenth of a second, and five on a main thread that runs no queue.
struct UserInfos: Benchmark {
  static let name = "user-infos"
  static let summary = "user infos of WatchConnectivity until all are received, against messages"
  static let isPaired = true
  // At most one and a half times as long.
  static func requiredRatio(_ size: Size) -> Double? { 0.6 }

  private let sides: BothSides
  private let count: Int
  private let received = Monitor(0)
  private var options: SendOptions

  init(size: Size) throws {
    count = size == .small ? 500 : 10_000
    sides = try BothSides()
    options = SendOptions()
    options.durability = .process
    try sides.second.receive { [received] _ in received.signal { $0 += 1 } }
    try ours()
    try baseline()
  }

  func ours() throws {
    let goal = sides.taking.count + count
    let (phone, count) = (sides.phone, count)
    try WormholeSyscalls.Thread("sender") {
      for number in 0..<count { phone.transferUserInfo(["n": number]) }
    }.join()
    try sides.taking.wait(until: goal)
  }

  func baseline() throws {
    let goal = received.withLock { $0 } + count
    for number in 0..<count {
      try sides.peer.send(["n": .integer(Int64(number))] as PropertyListValue, options)
    }
    guard received.wait(until: .now + .seconds(60), { $0 >= goal ? () : nil }) != nil else {
      throw BenchmarkError.nothingMeasured(Self.name)
    }
  }
}

/// A phone and a watch in one process, and two members beside them in the same container.
private final class BothSides {
  let phone: WCSession
  let watch: WCSession
  let first: Member
  let second: Member
  let peer: Peer
  let taking = Taking()
  private let ends = Ends()
  private let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    let path = scratch.path + "/container"
    _ = try Pairing(directory: path)
    var settings = WCSession.Settings()
    settings.durability = .process
    phone = WCSession(role: .phone, place: .directory(path), settings: settings)
    watch = WCSession(role: .watch, place: .directory(path), settings: settings)
    first = try SharedContainer(directory: path).join(as: "first")
    second = try SharedContainer(directory: path).join(as: "second")
    peer = first.peer("second")
    phone.delegate = ends
    watch.delegate = taking
    phone.activate()
    watch.activate()
    let deadline = ContinuousClock.now + .seconds(10)
    while !phone.isReachable {
      guard ContinuousClock.now < deadline else { throw BenchmarkError.nothingMeasured("sessions") }
    }
  }

  deinit {
    phone.end()
    watch.end()
    first.leave()
    second.leave()
  }
}

/// The phone's delegate; a session without a delegate would keep its outcomes.
private final class Ends: NSObject, WCSessionDelegate {
  func session(
    _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
    error: (any Error)?
  ) {}

  func sessionDidBecomeInactive(_ session: WCSession) {}
  func sessionDidDeactivate(_ session: WCSession) {}
}

/// The watch's delegate, which counts user infos and replies to messages.
private final class Taking: NSObject, WCSessionDelegate {
  private let received = Monitor(0)

  var count: Int { received.withLock { $0 } }

  func wait(until count: Int) throws {
    guard received.wait(until: .now + .seconds(60), { $0 >= count ? () : nil }) != nil else {
      throw BenchmarkError.nothingMeasured(UserInfos.name)
    }
  }

  func session(
    _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
    error: (any Error)?
  ) {}

  func sessionDidBecomeInactive(_ session: WCSession) {}
  func sessionDidDeactivate(_ session: WCSession) {}
  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    received.signal { $0 += 1 }
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) {
    replyHandler(["seats": 2])
  }
}
