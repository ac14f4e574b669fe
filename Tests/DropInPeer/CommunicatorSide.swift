import Communicator
import Foundation
import TestSupport
import WormholeSyscalls

/// One side that uses Communicator, in the spellings of its source and of its README; does the
/// steps of its arguments and prints its observations, a line each.
enum CommunicatorSide {
  private static let heard = Heard<String>()
  private static let observations = Monitor<[String: Observation]>([:])

  static func run(_ steps: [String]) {
    DispatchQueue.global().async {
      for step in steps { take(step) }
      exit(0)
    }
    dispatchMain()
  }

  private static func say(_ line: String) {
    try? StandardStream.output.write(line + "\n")
    heard.add(line)
  }

  private static func number(_ content: Content) -> Int { content["n"] as? Int ?? -1 }

  private static func take(_ step: String) {
    let words = step.split(separator: "=", maxSplits: 1).map(String.init)
    let word = words.count > 1 ? words[1] : ""
    switch words[0] {
    case "observe": observe(word)
    case "unobserve":
      observations.withLock { $0[word] }.map { GuaranteedMessage.unobserve($0) }
    case "say": say(word)
    case "await":
      do {
        try heard.wait(word) { $0.contains { $0.hasPrefix(word) } }
      } catch {
        say("never: \(word)")
      }
    case "ready":
      do {
        try eventually("it is ready") {
          Communicator.shared.currentReachability != .notReachable
        }
      } catch {
        say("\(error)")
      }
    case "near":
      do {
        try eventually("it is near") {
          switch Communicator.shared.currentReachability {
          case .immediateMessaging: true
          default: false
          }
        }
      } catch {
        say("\(error)")
      }
    default: send(words[0], ["n": Int(word) ?? 0])
    }
  }

  private static func observe(_ type: String) {
    switch type {
    case "immediate":
      ImmediateMessage.observe { say("immediate \($0.identifier) \(number($0.content))") }
    case "interactive":
      InteractiveImmediateMessage.observe { message in
        say("interactive \(message.identifier) \(number(message.content))")
        message.reply(ImmediateMessage("reply", content: ["n": -number(message.content)]))
      }
    case "guaranteed":
      let observation = GuaranteedMessage.observe {
        say("guaranteed \($0.identifier) \(number($0.content))")
      }
      observations.withLock { $0[type] = observation }
    case "blob":
      Blob.observe {
        say("blob \($0.identifier) \($0.content.count) \(number($0.metadata ?? [:]))")
      }
    case "context": Content.observe { say("context \(number($0.content))") }
    case "complication": ComplicationInfo.observe { say("complication \(number($0.content))") }
    case "reachability": Reachability.observe { say("reachability \($0)") }
    case "state": Communicator.State.observe { say("state \($0)") }
    case "watch":
      WatchState.observe { say("watch \($0.numberOfComplicationUpdatesAvailableToday)") }
    case "phone": PhoneState.observe { say("phone \($0)") }
    default: fatalError("what is '\(type)'?")
    }
  }

  private static func send(_ kind: String, _ content: Content) {
    let communicator = Communicator.shared
    let ended = { @Sendable (result: Result<Void, any Swift.Error>) in
      switch result {
      case .success: say("ended \(kind)")
      case .failure(let error): say("failed \(kind) \(error)")
      }
    }
    switch kind {
    case "immediate":
      communicator.send(ImmediateMessage(identifier: "i", content: content)) {
        say("failed immediate \($0)")
      }
    case "interactive":
      communicator.send(
        InteractiveImmediateMessage(identifier: "q", content: content) {
          say("reply \(number($0.content))")
        })
    case "guaranteed":
      communicator.send(
        GuaranteedMessage(identifier: "g", content: content), completion: ended)
    case "blobs":
      let blob = Data(repeating: 7, count: 200_000)
      DispatchQueue.concurrentPerform(iterations: number(content)) { index in
        // All blobs have one name; in the original, blobs of one name overwrite each other.
        Communicator.shared.transfer(
          blob: Blob(identifier: "same", content: blob + [UInt8(index)], metadata: ["n": index]),
          completion: ended)
      }
    case "context":
      do {
        try communicator.sync(Context(content: content))
      } catch {
        say("failed context \(error)")
      }
    case "complication":
      communicator.transfer(ComplicationInfo(content: content)) { result in
        say("complications left \((try? result.get()) ?? -1)")
      }
    case "cancelled":
      let task = communicator.send(GuaranteedMessage(identifier: "c", content: content)) {
        if case .failure = $0 { say("cancelled") }
      }
      task?.cancel()
    default: fatalError("what is '\(kind)'?")
    }
  }
}
