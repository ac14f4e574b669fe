import DropIns
import Foundation
import PropertyLists
import Syscalls
import WatchConnectivity
import Wormhole

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

/// User infos of WatchConnectivity until their outcomes are reported, against as many messages.
struct UserInfos: Benchmark {
  static let name = "user-infos"
  static let summary = "user infos of WatchConnectivity until all outcomes arrive, against messages"
  static let isPaired = true
  // At most one and a half times as long.
  static func requiredRatio(_ size: Size) -> Double? { 0.6 }

  private let sides: BothSides
  private let count: Int
  private let sent = Monitor(0)
  private let told = Monitor(0)
  private var options: SendOptions

  init(size: Size) throws {
    count = size == .small ? 500 : 10_000
    sides = try BothSides()
    options = SendOptions()
    options.durability = .process
    try sides.second.receive { _ in }
    try sides.first.watchOutcomes { [told] _ in told.signal { $0 += 1 } }
    try ours()
    try baseline()
  }

  /// The outcome of the last user info is withheld until the next one is sent, so the call does not
  /// wait for the last outcome.
  func ours() throws {
    for number in 0..<count { sides.phone.transferUserInfo(["n": number]) }
    sent.withLock { $0 += count }
    try sides.ends.wait(until: sent.withLock { $0 } - 1)
  }

  func baseline() throws {
    let goal = told.withLock { $0 } + count
    for number in 0..<count {
      try sides.peer.send(["n": .integer(Int64(number))] as PropertyListValue, options)
    }
    guard told.wait(until: .now + .seconds(60), { $0 >= goal ? () : nil }) != nil else {
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
  let ends = Ends()
  private let taking = Taking()
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

/// The phone's delegate, which counts the outcomes.
private final class Ends: NSObject, WCSessionDelegate {
  private let told = Monitor(0)

  func wait(until count: Int) throws {
    guard told.wait(until: .now + .seconds(60), { $0 >= count ? () : nil }) != nil else {
      throw BenchmarkError.nothingMeasured(UserInfos.name)
    }
  }

  func session(
    _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
    error: (any Error)?
  ) {}

  func sessionDidBecomeInactive(_ session: WCSession) {}
  func sessionDidDeactivate(_ session: WCSession) {}

  func session(
    _ session: WCSession, didFinish transfer: WCSessionUserInfoTransfer, error: (any Error)?
  ) {
    told.signal { $0 += 1 }
  }
}

/// The watch's delegate, which takes all content and replies to messages.
private final class Taking: NSObject, WCSessionDelegate {
  func session(
    _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
    error: (any Error)?
  ) {}

  func sessionDidBecomeInactive(_ session: WCSession) {}
  func sessionDidDeactivate(_ session: WCSession) {}
  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {}

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) {
    replyHandler(["seats": 2])
  }
}
