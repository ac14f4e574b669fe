import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholePairings
import WormholeSyscalls

@testable import WatchConnectivity

/// An operation fails for a moment, and no later notice reports the end of the failure.
@Suite(.blocking) struct FaultTests {
  private let processes: SideProcesses

  init() throws { processes = try SideProcesses() }

  private let once = "@1:before:fail=EMFILE"

  // MARK: Deliveries

  @Test func aContextThatCouldNotBeReadComes() throws {
    let phone = try processes.start("phone", ["activate", "context=2", "await=never"])
    try processes.wait(phone, ["activated 2"])
    let watch = try processes.start(
      "watch", ["activate", "await=never"], faults: "open~phone.watch,taking\(once)")
    try processes.wait(watch, ["context n=2"])
  }

  /// The end of the previous run may take longer than the start of the next one.
  @Test func aNameThatIsStillTakenIsTakenLater() throws {
    let holder = try SharedContainer(directory: processes.container).join(as: "watch.watch")
    let watch = try processes.start(
      "watch", ["activate", "await=never"],
      settings: ["WORMHOLE_FAULT_TRACE=\(processes.folder.path)/trace"])
    #expect(throws: Never.self) {
      // Each join first looks for a record of another machine.
      try eventually("the second join begins") {
        let calls = (try? processes.folder.read("trace"))?.split(separator: "\n") ?? []
        return calls.count { $0.hasSuffix("watch.watch/elsewhere.plist") } > 1
      }
    }
    holder.leave()
    try processes.wait(watch, ["activated 2"])
  }

  @Test func ifContextsCannotBeWatchedUserInfosComeAllTheSame() throws {
    let phone = try processes.start("phone", ["activate", "info=1", "context=2", "await=never"])
    let watch = try processes.start(
      "watch", ["activate", "await=never"], faults: "open~watch.watch/context\(once)")
    try processes.wait(watch, ["info n=1", "context n=2"])
    try processes.wait(phone, ["finished n=1 ok"])
  }

  /// A transfer that was declined because the pairing could not be read is delivered once the
  /// pairing is readable.
  @Test func whatIsPairedIsReadAgainIfItCouldNotBe() throws {
    let sides = try TwoSides()
    try sides.pairing.setInRange(true)
    try sides.activate()
    try eventually("it receives") { sides.watch.connection?.reception?.isStopped == false }
    // A late notice of the first state would start the reception without a second attempt.
    sides.watch.state.withLock { $0.opened }?.watching.stop()
    fault([pairingIsUnreadable], in: sides.watch) { watch in
      watch.connection?.keep(Reception?.none)
      watch.review()
    }
    sides.phone.transferUserInfo(["n": 1])
    try sides.watchSide.heard.wait("it") { $0.contains("info n=1") }
  }

  /// Runs the body on the session's queue, while the calls of the thread fail.
  private func fault(
    _ rules: [FaultRule], in session: WCSession, _ body: (WCSession) -> Void
  ) {
    session.work.sync { _ = FaultPoints.with(rules) { body(session) } }
  }

  private let pairingIsUnreadable = FaultRule(
    .open, path: "pairing/value.plist", persistent: true, .fail(.tooManyOpenFiles))

  /// No property reports an error: the log has the reason.
  @Test func thatThePairingIsUnreadableIsLogged() throws {
    try processes.pairing.setInRange(true)
    let watch = try processes.start("watch", ["activate", "unreadable", "await=never"])
    try processes.wait(watch, ["activated 2", "paired false", "message failed 7001"])
    let entry = "cannot read channel '\(Pairing.channelName)': too many open files"
    let errors = try watch.errors
    #expect(errors.contains(entry), "\(errors)")
  }

  /// As with the pairing: the property reports no error.
  @Test func thatTheReachabilityIsUnreadableIsLogged() throws {
    try processes.pairing.setInRange(true)
    let watch = try processes.start("watch", ["activate", "unseen", "await=never"])
    try processes.wait(watch, ["activated 2", "reachable false"])
    let entry = "cannot open member 'phone.watch': too many open files"
    let errors = try watch.errors
    #expect(errors.contains(entry), "\(errors)")
  }

  // MARK: Reports

  @Test func theEndThatCouldNotBeReadIsTold() throws {
    let watch = try processes.start("watch", ["activate", "await=never"])
    let phone = try processes.start(
      "phone", ["activate", "info=1", "await=never"], faults: "open~receipts/1,\(once)")
    try processes.wait(phone, ["finished n=1 ok"])
    withExtendedLifetime(watch) {}
  }

  /// The sender knows the kind of the message.
  @Test func theEndIsToldThoughItsReceiptIsDamaged() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    sides.phone.transferUserInfo(["n": 1])
    let inbox = sides.container + "/members/watch.watch/inbox"
    let name = try #require(
      try FileManager.default.contentsOfDirectory(atPath: inbox).first { $0 != "room" })
    // As the receipt that its receiver would leave, by the same rename.
    let receipt = sides.container + "/members/phone.watch/receipts/\(name).ok"
    try Data("damaged".utf8).write(to: URL(fileURLWithPath: inbox + "/" + name))
    try FileManager.default.moveItem(atPath: inbox + "/" + name, toPath: receipt)
    try sides.phoneSide.heard.wait("its end") { $0.contains("finished n=1 ok") }
    #expect(sides.phone.outstandingUserInfoTransfers.isEmpty)
  }

  @Test func noWordStaysThatWasWrongForAMoment() throws {
    let sides = try TwoSides()
    try sides.activate()
    let rule = FaultRule(
      .open, path: "members/phone.watch", persistent: true, .fail(.tooManyOpenFiles))
    let presence = FaultRule(.ofdquery, persistent: true, .fail(.tooManyOpenFiles))
    fault([rule, presence], in: sides.watch) { $0.report() }
    // If the failed check had counted as an end of the phone's app, the next report would be no
    // change.
    try sides.pairing.setInRange(false)
    try sides.watchSide.heard.wait("the change") { $0.contains("reachable false") }
  }

  /// A caller that asked in the meantime was told that nothing is paired.
  @Test func theFirstChangeIsToldThoughNothingWasKnownBefore() throws {
    let sides = try TwoSides()
    try sides.pairing.setInRange(true)
    try sides.activate()
    let count = sides.watchSide.heard.count
    fault([pairingIsUnreadable], in: sides.watch) { watch in
      // As just after an activation.
      watch.state.withLock { _ = $0.machine.activated(with: $0.machine.watch) }
      watch.report()
    }
    try sides.watchSide.heard.wait("what is so") {
      $0.dropFirst(count).contains("reachable true")
    }
  }

  // MARK: Activation

  @Test func anActivationEndsThoughAnEndWaitsToBeTold() throws {
    let killed = try processes.start("phone", ["activate", "info=1", "die"])
    #expect(try killed.outcome().status != .exited(0))
    let watch = try processes.start("watch", ["activate", "await=info n=1", "drain"])
    #expect(try watch.outcome().status == .exited(0))
    let phone = try processes.start(
      "phone", ["activate", "await=activated 0", "activate", "await=never"],
      faults: "open~notices\(once)")
    try processes.wait(phone, ["activated 0", "activated 2", "finished n=1 ok"])
  }

  @Test func anActivationThatFailedLeavesTheNextOneWithEarsToHear() throws {
    let watch = try processes.start("watch", ["activate", "await=never"])
    try processes.wait(watch, ["activated 2"])
    let phone = try processes.start(
      "phone", ["activate", "await=activated 0", "activate", "await=never"],
      faults: "open~channels\(once)")
    try processes.wait(phone, ["activated 0", "activated 2"])
    try processes.pairing.setInRange(false)
    try processes.wait(phone, ["reachable false"])
    withExtendedLifetime(watch) {}
  }

  /// No notice reports that the earlier member has left the name.
  @Test func aNameThatIsTakenIsTriedAgain() throws {
    let sides = try TwoSides()
    try sides.pairing.unpair()
    try sides.activatePhone()
    let other = try SharedContainer(directory: sides.container).join(as: "phone.other")
    try sides.pairing.pair("other")
    try eventually("it could not join") { sides.phone.connection == nil }
    try sides.phoneSide.heard.wait("the change") { $0.contains("watch state") }
    other.leave()
    try eventually("it has joined") { sides.phone.connection != nil }
    try sides.phone.updateApplicationContext(["n": 1])
  }

  /// A user who moves the container away and continues means a new container.
  @Test func aSessionBeginsAnewInAContainerThatIsNew() throws {
    let sides = try TwoSides()
    try sides.pairing.setInRange(true)
    try sides.activate()
    sides.phone.transferUserInfo(["n": 1])
    try sides.watchSide.heard.wait("it") { $0.contains("info n=1") }
    try FileManager.default.moveItem(atPath: sides.container, toPath: sides.container + ".away")
    for (session, side) in [(sides.phone, sides.phoneSide), (sides.watch, sides.watchSide)] {
      session.activate()
      try side.heard.wait("activation") { heard in
        heard.filter { $0 == "activated 2 ok" }.count == 2
      }
    }
    try eventually("both are reachable") { sides.phone.isReachable && sides.watch.isReachable }
    try Pairing(directory: sides.container).setInRange(false)
    try sides.watchSide.heard.wait("the change") { $0.last == "reachable false" }
    sides.phone.transferUserInfo(["n": 2])
    try sides.phone.updateApplicationContext(["n": 2])
    try Pairing(directory: sides.container).setInRange(true)
    try sides.watchSide.heard.wait("both") {
      $0.contains("info n=2") && $0.contains("context n=2")
    }
    try sides.phoneSide.heard.wait("its end") { $0.contains("finished n=2 ok") }
  }

  // MARK: What is paired

  /// The pairing starts again with its defaults, both sides in range; so does the number of
  /// changes.
  @Test func whatIsPairedMayBeForgotten() throws {
    let sides = try TwoSides()
    try sides.activate()
    try eventually("it receives") { sides.watch.connection?.reception?.isStopped == false }
    sides.watch.work.suspend()
    let result = Result {
      try sides.pairing.setInRange(false)
      let (state, version) = try sides.pairing.versioned
      sides.watch.known.withLock { $0 = (version, state) }
      try SharedContainer(directory: sides.container).removeChannel(Pairing.channelName)
    }
    sides.watch.work.resume()
    try result.get()
    sides.phone.transferUserInfo(["n": 1])
    try sides.watchSide.heard.wait("it") { $0.contains("info n=1") }
  }

  @Test func aBudgetThatNobodyCanHaveUsedIsNone() throws {
    let sides = try TwoSides()
    try sides.pairing.setComplication(enabled: true)
    try sides.pairing.update { state in
      (state.budgetDay, state.budgetUsed) = (WCSession.today, .min + 1)
    }
    try sides.activatePhone()
    #expect(sides.phone.remainingComplicationUserInfoTransfers == 50)
    #expect(sides.phone.transferCurrentComplicationUserInfo(["n": 1]).isCurrentComplicationInfo)
  }

  /// For lack of descriptors, no user would free space.
  @Test func lackOfDescriptorsIsNoLackOfSpace() {
    let full = WormholeError(.noSpace, "send message", "watch")
    #expect(WCError(full).code == .insufficientSpace)
    let exhausted = WormholeError(.tooManyOpenFiles, "send message", "watch")
    #expect(WCError(exhausted).code == .genericError)
  }

  // MARK: Pending transfers

  @Test func whatIsOutstandingIsLookedForAgainIfItCouldNotBe() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    sides.phone.transferUserInfo(["n": 1])
    try sides.restartPhone()
    try sides.activatePhone()
    let rule = FaultRule(
      .getdents, path: "watch.watch/inbox", persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) { #expect(sides.phone.outstandingUserInfoTransfers.isEmpty) }
    #expect(sides.phone.outstandingUserInfoTransfers.map { $0.userInfo["n"] as? Int } == [1])
  }

  /// Transfers that end during a listing are not added after their end was reported, nor are
  /// messages that are no transfers.
  @Test func whatHasEndedIsNotOutstanding() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    for number in 1...200 { sides.phone.transferUserInfo(["n": number]) }
    var options = SendOptions()
    options.kind = "something else"
    try sides.phone.connection?.peer.send(1, options)
    try sides.restartPhone()
    try sides.activatePhone()
    try sides.activateWatch()
    let phone = sides.phone
    DispatchQueue.concurrentPerform(iterations: 4) { _ in _ = phone.outstandingUserInfoTransfers }
    try sides.watchSide.heard.wait("all") { $0.contains("info n=200") }
    try sides.phoneSide.heard.wait("all ends") { heard in
      heard.filter { $0.hasPrefix("finished") }.count == 200
    }
    #expect(sides.phone.outstandingUserInfoTransfers.isEmpty)
  }

  // MARK: Messages

  /// The time that the start of the phone's app takes is not added to the reply's time limit.
  @Test func aMessagesTimeIsNotBegunAnewOnceThePhoneWasStarted() throws {
    let sides = try TwoSides { $0.messageTimeout = .seconds(20) }
    try sides.activateWatch()
    let container = try SharedContainer(directory: sides.container)
    // The program lives until the phone has joined, also on a busy machine.
    try container.registerLaunch(of: "phone.watch", program: "/bin/sleep", arguments: ["60"])
    try eventually("it can be started") { sides.watch.isReachable }
    let (asked, lefts) = (Heard<Instant>(), Heard<Instant>())
    let errors = Heard<String>()
    let joining = try WormholeSyscalls.Thread("phone") {
      do {
        try asked.wait("the message") { !$0.isEmpty }
        // So much is gone then.
        try eventually("a while passes") { Instant.now > asked.all[0] + .seconds(1) }
        let phone = try container.join(as: "phone.watch")
        phone.respond(toKind: nil) { request in
          let now = Instant.now
          lefts.add(now + request.timeLeft)
          try? request.reply([String: Int]())
        }
        try lefts.wait("it has come") { !$0.isEmpty }
        phone.leave()
      } catch {
        errors.add("\(error)")
      }
    }
    sides.watch.sendMessage(["n": 1], replyHandler: nil)
    asked.add(.now)
    joining.join()
    #expect(errors.all == [])
    let latest = try #require(lefts.all.first)
    #expect(latest <= asked.all[0] + .seconds(20) + .milliseconds(100))
  }

  /// A foreign program is the watch, and sends a reply of another form.
  @Test func anAnswerThatIsNoReplyIsAnError() throws {
    let sides = try TwoSides()
    let watch = try SharedContainer(directory: sides.container).join(as: "watch.watch")
    let responding = watch.respond(toKind: nil) { request in try? request.reply([String: Int]()) }
    try sides.activatePhone()
    try eventually("it is reachable") { sides.phone.isReachable }
    let ends = Heard<Int>()
    sides.phone.sendMessage(["n": 1]) { _ in
      ends.add(0)
    } errorHandler: {
      ends.add(($0 as NSError).code)
    }
    try ends.wait("an end") { $0 == [WCError.Code.messageReplyFailed.rawValue] }
    responding.stop()
  }
}
