internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// Requests and immediate messages between machines.
///
/// On the asker's machine a proxy takes the request, and this bridge asks the bridge of the other
/// machine, for the rest of the time until the deadline. There the asker's proxy asks the addressed
/// process alone. Nothing is repeated, so no process receives a request twice.
extension Bridge {
  private var serversNow: Int64? { clockOffset.map { now &+ $0 } }

  /// Handles the requests and replies from other threads.
  func takeRequests(_ news: BridgeNews.NewsContent) {
    for request in news.requests { carry(request) }
    for (subject, payload, instead) in news.replies { reply(to: subject, payload, instead) }
    for name in news.channels { channels.own[name]?.isDirty = true }
    for (change, answer) in news.changes { ask(change, answer) }
  }

  // MARK: The asker's machine

  private func carry(_ request: CarriedRequest) {
    let question = request.question
    guard let machine = residents[.member(question.receiver)]?.machine, let link, link.isServing
    else {
      return request.answer(.unreachable("there is no connection to the other machine"))
    }
    let left = request.timeLeft
    guard left > .zero,
      let bytes = RequestTraffic.bytes(question, left: left.inNanoseconds, at: serversNow)
    else { return }
    traffic.sent += 1
    let subject = Subjects.word(.live, to: machine, from: place.machine)
    guard question.letter != .message else {
      do throws(RelayFailure) {
        try link.connection.publish(subject, bytes)
      } catch {
        log(.warning, "a message to '\(question.receiver)' is not carried: \(error.reason)")
      }
      return
    }
    link.connection.request(subject, bytes, within: left) { result in
      switch result {
      case .success(let message):
        request.answer(
          RequestTraffic.reply(message.payload)
            ?? .refused("the reply of the other machine cannot be read"))
      case .failure(let failure) where failure.kind == .timedOut: break
      case .failure(let failure) where failure.kind == .noResponders:
        request.answer(.unreachable("no bridge serves the member's machine, '\(machine)'"))
      case .failure(let failure) where failure.kind == .closed:
        request.answer(.unreachable("the connection to the other machine ended before the reply"))
      case .failure(let failure):
        request.answer(.refused("the request cannot be carried: \(failure.reason)"))
      }
    }
  }

  // MARK: The machine that is asked

  func take(request message: RelayMessage, _ list: PropertyListValue, from machine: String) {
    guard let (question, left) = RequestTraffic.question(list, now: serversNow) else {
      return log(.warning, "a request of machine \(machine) cannot be read, and is dropped")
    }
    guard left > .zero else { return }
    traffic.received += 1
    let now = Instant.now
    let held = HeldRequest(
      question: question, machine: machine, reply: message.reply, end: now + left,
      patienceEnd: now + min(left, RequestTraffic.patience))
    // The requests of one asker stay in order.
    let isBehind = traffic.held.contains { $0.question.sender == question.sender }
    guard isBehind || !ask(held, now) else { return }
    guard traffic.held.count < RequestTraffic.mostHeld else {
      return reply(to: held, .unreachable("too many requests wait for their senders' names"))
    }
    traffic.held.append(held)
  }

  /// Passes on the held requests whose askers are shown by now.
  func askHeld(_ now: Instant) {
    guard !traffic.held.isEmpty else { return }
    let held = traffic.held
    traffic.held = []
    for one in held {
      if ask(one, now) { continue }
      if one.patienceEnd > now {
        traffic.held.append(one)
      } else {
        reply(
          to: one,
          .unreachable(
            "the asking member, '\(one.question.sender ?? "")', is not known on the other machine"))
      }
    }
  }

  /// Returns false if the process that asks is not shown here.
  private func ask(_ held: HeldRequest, _ now: Instant) -> Bool {
    let (question, reply) = (held.question, held.reply)
    guard residents[.member(question.receiver)] == nil else {
      self.reply(to: held, .unreachable("the home of the member is a third machine"))
      return true
    }
    let left = held.end - now
    guard left > .zero else { return true }
    let end: @Sendable (CarriedReply?) -> Void = { [news] answer in
      guard let reply, let answer, let bytes = RequestTraffic.bytes(answer) else { return }
      news.note(reply: bytes, to: reply)
    }
    if let sender = question.sender {
      guard let proxy = residents[.member(sender)], proxy.machine == held.machine else {
        return false
      }
      return proxy.ask(question, within: left, end)
    }
    do throws(WormholeError) {
      if traffic.desk == nil { traffic.desk = try RequestDesk(carrier) }
      traffic.desk?.ask(question, within: left, end)
    } catch {
      self.reply(to: held, .unreachable(error.reason))
    }
    return true
  }

  private func reply(to held: HeldRequest, _ answer: CarriedReply) {
    guard let subject = held.reply, let bytes = RequestTraffic.bytes(answer) else { return }
    reply(to: subject, bytes)
  }

  private func reply(to subject: String, _ payload: [UInt8], _ instead: [UInt8]? = nil) {
    guard let link else { return }
    do throws(RelayFailure) {
      try link.connection.publish(subject, payload)
    } catch {
      guard error.kind == .tooLarge,
        let bytes = instead
          ?? RequestTraffic.bytes(
            .refused("the reply has \(payload.count) bytes, more than the servers carry"))
      else { return }
      try? link.connection.publish(subject, bytes)
    }
  }
}
