import Foundation
import TestSupport
import WatchConnectivity
import WormholeSyscalls

/// One side of a watch session, configured by the environment; does the steps of its arguments in
/// order, and prints its notifications, a line each.
///
///     info=N context=N message=N question=N file=PATH complication=N   sends it
///     burst=FROM,TO,DIRECTORY
///                     transfers numbers, each fifth in a file, and says before and after each
///     activate        activates, and waits until that is over
///     await=LINE      waits until it has been told that
///     unreadable      reads and sends while this thread cannot read the pairing
///     unseen          reads whether the phone is reachable while this thread cannot read that
///     die-in=WORD     is killed inside the first callback whose line begins so
///     die             is killed
///     drain           ends in order: what was handled does not come again
///     refuse          takes no delegate from here on
final class WatchSide: NSObject, WCSessionDelegate, @unchecked Sendable {
  // Variables that are not set before the session is activated are behind monitors.

  static func run(_ steps: [String]) {
    let side = WatchSide()
    let session = WCSession.default
    session.delegate = side
    DispatchQueue.global().async {
      for step in steps { side.take(step, session) }
      exit(0)
    }
    dispatchMain()
  }

  private let heard = Heard<String>()
  private let deadly = Monitor<String?>(nil)

  private func say(_ line: String) {
    try? StandardStream.output.write(line + "\n")
    if let word = deadly.withLock({ $0 }), line.hasPrefix(word) { die() }
    heard.add(line)
  }

  private func die() { try? Processes.send(.kill, to: Processes.current) }

  private func take(_ step: String, _ session: WCSession) {
    let words = step.split(separator: "=", maxSplits: 1).map(String.init)
    let word = words.count > 1 ? words[1] : ""
    let content: [String: Any] = ["n": Int(word) ?? 0]
    switch words[0] {
    case "activate":
      session.activate()
      wait("activated")
    case "info": session.transferUserInfo(content)
    case "complication": session.transferCurrentComplicationUserInfo(content)
    case "context":
      do {
        try session.updateApplicationContext(content)
      } catch {
        say("context failed \((error as NSError).code)")
      }
    case "message":
      session.sendMessage(content, replyHandler: nil) { self.say("message failed \(code($0))") }
    case "question":
      session.sendMessage(content) {
        self.say("reply \(text($0))")
      } errorHandler: {
        self.say("question failed \(code($0))")
      }
    case "file": session.transferFile(URL(fileURLWithPath: word), metadata: ["path": word])
    case "burst": burst(word.split(separator: ",").map(String.init), session)
    case "await": wait(word)
    case "unreadable": useUnreadable(session)
    case "unseen": lookUnseen(session)
    case "die-in": deadly.withLock { $0 = word }
    case "die": die()
    case "drain": session.end()
    case "refuse": session.delegate = nil
    default: fatalError("what is '\(step)'?")
    }
  }

  private func useUnreadable(_ session: WCSession) {
    #if FAULT_POINTS
      let rule = FaultRule(
        .open, path: "pairing/value.plist", persistent: true, .fail(.tooManyOpenFiles))
      FaultPoints.with([rule]) {
        take("message=1", session)
        say("paired \(session.isPaired)")
      }
    #endif
  }

  private func lookUnseen(_ session: WCSession) {
    #if FAULT_POINTS
      let rule = FaultRule(
        .open, path: "members/phone.watch", persistent: true, .fail(.tooManyOpenFiles))
      FaultPoints.with([rule]) { say("reachable \(session.isReachable)") }
    #endif
  }

  private func burst(_ words: [String], _ session: WCSession) {
    for number in Int(words[0])!...Int(words[1])! {
      say("about \(number)")
      if number % 5 == 0 {
        let url = URL(fileURLWithPath: "\(words[2])/\(number).txt")
        try? Data("content-\(number)".utf8).write(to: url)
        session.transferFile(url, metadata: nil)
      } else {
        session.transferUserInfo(["n": number])
      }
      say("sent \(number)")
    }
    say("burst is over")
  }

  private func wait(_ line: String) {
    do {
      try heard.wait(line) { $0.contains { $0.hasPrefix(line) } }
    } catch {
      say("never: \(line)")
    }
  }

  // MARK: What it is told

  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) { say("activated \(activationState.rawValue)") }

  func sessionReachabilityDidChange(_ session: WCSession) {
    say("reachable \(session.isReachable)")
  }

  func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    say("message \(text(message))")
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void
  ) {
    say("question \(text(message))")
    replyHandler(["n": -(message["n"] as? Int ?? 0)])
  }

  func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) { say("context \(text(applicationContext))") }

  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    say("info \(text(userInfo))")
  }

  func session(_ session: WCSession, didReceive file: WCSessionFile) {
    let content = (try? String(contentsOf: file.fileURL, encoding: .utf8)) ?? "nothing"
    say("file \(file.fileURL.lastPathComponent) \(content)")
  }

  func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) { say("finished \(text(userInfoTransfer.userInfo)) \(code(error))") }

  func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: (any Error)?
  ) { say("finished file \(fileTransfer.file.fileURL.lastPathComponent) \(code(error))") }
}

private func text(_ values: [String: Any]) -> String {
  values.keys.sorted().map { "\($0)=\(values[$0]!)" }.joined(separator: ",")
}

private func code(_ error: (any Error)?) -> String {
  error.map { "\(($0 as NSError).code)" } ?? "ok"
}
