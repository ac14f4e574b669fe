import Foundation
import WatchConnectivity
import WormholeSyscalls

/// Transfers numbers in a loop, and stores a closure for each transfer in a dictionary without a
/// lock, as many apps do; prints how long the loop took, and whether the closures were called in
/// order.
final class StoringSide: NSObject, WCSessionDelegate, @unchecked Sendable {
  // Unguarded on purpose: the session keeps the loop and the delegate apart.
  private var handlers: [WCSessionUserInfoTransfer: () -> Void] = [:]
  private var called: [Int] = []
  private var finished = 0
  private let count: Int
  private let isOnMain: Bool
  private static let running = Monitor<StoringSide?>(nil)

  private init(_ count: Int, onMain isOnMain: Bool) {
    (self.count, self.isOnMain) = (count, isOnMain)
    super.init()
  }

  static func run(_ count: Int, onMain isOnMain: Bool) {
    let side = StoringSide(count, onMain: isOnMain)
    running.withLock { $0 = side }
    WCSession.default.delegate = side
    WCSession.default.activate()
    dispatchMain()
  }

  /// The start of the loop, and of its latest transfer; nil outside the loop.
  private let loop = Monitor<(began: Instant, latest: Instant)?>(nil)

  /// Whether the session may report an outcome although the loop runs: the loop takes longer than
  /// outcomes are withheld, or its thread has paused for longer than the session waits.
  private var isSlow: Bool {
    loop.withLock { loop in
      guard let loop else { return false }
      let pause = isOnMain ? Duration.seconds(5) : .milliseconds(100)
      return .now - loop.began >= .seconds(5) || .now - loop.latest >= pause
    }
  }

  private func transferAll() {
    let began = Instant.now
    for number in 0..<count {
      loop.withLock { $0 = (began, .now) }
      let transfer = WCSession.default.transferUserInfo(["n": number])
      handlers[transfer] = { self.called.append(number) }
    }
    loop.withLock { $0 = nil }
  }

  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    if isOnMain { return DispatchQueue.main.async { self.transferAll() } }
    do {
      try WormholeSyscalls.Thread("sender") { self.transferAll() }.detach()
    } catch { fatalError("cannot start a thread: \(error)") }
  }

  func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) {
    if isSlow {
      try? StandardStream.output.write("slow\n")
      exit(0)
    }
    handlers.removeValue(forKey: userInfoTransfer)?()
    finished += 1
    guard finished == count else { return }
    let isInOrder = called == Array(0..<count)
    try? StandardStream.output.write(isInOrder ? "in order\n" : "called \(called)\n")
    exit(0)
  }
}
