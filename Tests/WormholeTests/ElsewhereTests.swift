import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Members whose home is another machine.
@Suite(.blocking) struct ElsewhereTests {
  private static let machine = "0123456789abcdef"

  private let meeting: Meeting
  private let phone: Member
  private let printer: Peer
  /// The proxy's directory.
  private let home: MemberDirectory

  init() throws {
    meeting = try Meeting { $0.mailbox.retryDelay = .milliseconds(1) }
    // The profile of the printer's latest incarnation stays.
    try meeting.container.join(as: "printer", info: ["place": "hall"]).leave()
    phone = try meeting.container.join(as: "phone")
    printer = phone.peer("printer")
    home = try #require(try meeting.container.storage.existingMember("printer"))
  }

  private func state(_ bytes: [UInt8]) throws {
    let folder = try TemporaryDirectory()
    let file = try Descriptor.open(
      path: folder.path + "/new", [.writeOnly, .create], mode: 0o600)
    try file.writeFully(bytes)
    let path = "\(meeting.path)/\(home.path)/\(MemberDirectory.elsewhereName)"
    #expect(try run("mv", [folder.path + "/new", path]).status == .exited(0))
  }

  private func moveAway() throws {
    try state(Elsewhere(machine: Self.machine, since: Date()).encoded())
  }

  @Test func noProgramJoinsWhereverTheCarrierIs() throws {
    let presence = try #require(try home.takePresence())
    try moveAway()
    let container = meeting.container
    let codes = Monitor<[WormholeError.Code]>([])
    func tryAll() throws {
      let joiners = try (0..<10).map { number in
        try Thread("joiner") {
          do throws(WormholeError) {
            try container.join(as: "printer").leave()
          } catch {
            let isNamed = error.reason.contains(Self.machine)
            codes.signal { $0.append(isNamed ? error.code : .system) }
          }
        }
      }
      for joiner in joiners { joiner.join() }
    }
    try tryAll()
    presence.release()
    try tryAll()
    #expect(codes.withLock { $0 } == [WormholeError.Code](repeating: .nameTaken, count: 20))
  }

  /// A process that has found no file before the presence was free looks again under the presence.
  @Test func aMoveDuringTheJoinIsNoticed() throws {
    let pause = FaultPause()
    let container = try meeting.another()
    let end = Monitor<WormholeError.Code?>(nil)
    let joiner = try Thread("joiner") {
      FaultPoints.with([FaultRule(.ofdlock, path: "presence", .pause(pause))]) {
        do throws(WormholeError) {
          try container.join(as: "printer").leave()
        } catch {
          end.signal { $0 = error.code }
        }
      }
    }
    try eventually("it is about to take the name") { pause.isReached }
    try moveAway()
    pause.open()
    joiner.join()
    #expect(end.withLock { $0 } == .nameTaken)
    #expect(try !home.isPresent())
  }

  /// The removal would take the outcomes and the contexts for the other machine with it.
  @Test func aMoveDuringTheRemovalIsNoticed() throws {
    let (pause, codes) = (FaultPause(), Heard<WormholeError.Code?>())
    let container = meeting.container
    let remover = try Thread("remover") {
      FaultPoints.with([FaultRule(.ofdlock, path: "printer/presence", .pause(pause))]) {
        do throws(WormholeError) {
          _ = try container.removeMember("printer")
          codes.add(nil)
        } catch {
          codes.add(error.code)
        }
      }
    }
    try eventually("it is about to take the name") { pause.isReached }
    try moveAway()
    pause.open()
    remover.join()
    #expect(codes.all == [.refused])
    #expect(try home.elsewhere?.machine == Self.machine)
  }

  /// A sweeper has taken the new directory for one of a dead guest, and has waited since.
  @Test func aGuestOfAnotherMachineIsNotSweptWhileItIsMade() throws {
    let digits = "00000000000000aa"
    let guest = Carrier.Resident.guest(try #require(Incarnation(rawValue: digits)))
    let (pause, container) = (FaultPause(), try meeting.another())
    let carrier = try Carrier(meeting.container)
    _ = try meeting.container.storage.member(digits, in: .guests)
    let sweeper = try Thread("sweeper") {
      FaultPoints.with([FaultRule(.ofdlock, path: digits, .pause(pause))]) {
        try? container.guest().leave()
      }
    }
    try eventually("it is about to take the presence") { pause.isReached }
    _ = try carrier.proxy(of: guest, on: Self.machine)
    pause.open()
    sweeper.join()
    #expect(try carrier.existingProxy(of: guest)?.machine == Self.machine)
  }

  @Test(arguments: [[], Array("no property list".utf8)])
  func aFileThatCannotBeReadIsRespectedToo(_ bytes: [UInt8]) throws {
    try state(bytes)
    let error = try failure { try meeting.container.join(as: "printer").leave() }
    #expect(error.code == .nameTaken)
    #expect(error.reason.contains("which 'elsewhere.plist' does not name"))
    #expect(try meeting.container.members().first { $0.name == "printer" }?.machine == "")
  }

  /// Two machines would have a member of the name.
  @Test func aFileThatTheSystemRefusesLetsNoProgramJoin() throws {
    try moveAway()
    let rule = FaultRule(
      .open, path: MemberDirectory.elsewhereName, persistent: true, .fail(.inputOutput))
    try FaultPoints.with([rule]) {
      let join = try failure { try meeting.container.join(as: "printer").leave() }
      #expect(join.errno == Errno.inputOutput.rawValue)
    }
    #expect(try !home.isPresent())
    #expect(try home.elsewhere?.machine == Self.machine)
  }

  @Test func theMemberIsNeitherRemovedNorWoken() throws {
    try moveAway()
    let removal = try failure { try meeting.container.removeMember("printer") }
    #expect(removal.code == .refused && removal.reason.contains(Self.machine))
    let wake = try failure { try printer.wake(within: .seconds(1)) }
    #expect(wake.code == .unreachable && wake.reason.contains(Self.machine))
    // A carrier holds the name as long as the member runs there.
    let presence = try #require(try home.takePresence())
    try printer.wake(within: .seconds(1))
    presence.release()
  }

  /// Its home decides whether a message has expired.
  @Test func messagesWaitAndDoNotExpireHere() throws {
    try moveAway()
    let options = SendOptions.quick {
      $0.timeToLive = .milliseconds(1)
      $0.wantsOutcome = true
    }
    let outcomes = Heard<String>()
    let watching = try phone.watchOutcomes { outcomes.add("\($0.to) \($0.status)") }
    let sent = try printer.send(1, options)
    // A sender ends its expired messages in their order.
    try phone.peer("clock").send(2, options)
    try outcomes.wait("the outcome of the later message") { !$0.isEmpty }
    watching.stop()
    #expect(outcomes.all == ["clock expired"])
    #expect(try printer.queue.map(\.state) == [.waiting])
    #expect(try sent.state == .waiting)
    #expect(try printer.cancel(id: sent.id) == .cancelled)
  }

  /// Claims all waiting messages, as a carrier does.
  private func claim() throws {
    for name in try meeting.names("members/printer/inbox") {
      let folder = try meeting.folder("members/printer")
      try folder.rename("inbox/\(name)", to: folder, "claimed/\(name)~1")
    }
  }

  @Test func aClaimedMessageIsInTransit() throws {
    let sent = try printer.send(1, .quick())
    try moveAway()
    try claim()
    #expect(try printer.queue.map(\.state) == [.inTransit])
    #expect(try sent.state == .inTransit)
  }

  /// The request outlives the carrier, and is one file however often it is made.
  @Test func theCancellationOfAMessageInTransitIsRequested() throws {
    let sent = try printer.send(1, .quick { $0.id = "one" })
    let other = try printer.send(2, .quick())
    #expect(try printer.send(3, .quick()).cancel() == .cancelled)
    try moveAway()
    try claim()
    #expect(try sent.cancel() == .requested)
    #expect(try printer.cancel(id: "one") == .requested)
    let files = try meeting.names("members/printer/claimed").filter { $0.hasSuffix(",cancel") }
    #expect(files == [sent.name.text + ",cancel"])
    #expect(try printer.queue.map(\.id).sorted() == [sent.id, other.id].sorted())
    let findings = meeting.container.inspectMail().filter { $0.what.contains("foreign") }
    #expect(findings.isEmpty, "\(findings)")
    // The carrier settles the message.
    let folder = try meeting.folder("members/printer/claimed")
    for name in try folder.names() where name.hasPrefix(sent.name.text) { try folder.unlink(name) }
    #expect(try sent.cancel() == .tooLate)
    #expect(try printer.cancel(id: "none") == .tooLate)
  }

  /// The carrier settles the message before it can see the request, which nobody would remove.
  @Test func aRequestForASettledMessageIsNotLeft() throws {
    let sent = try printer.send(1, .quick())
    try moveAway()
    try claim()
    let pause = FaultPause()
    let result = Monitor<Cancellation?>(nil)
    let canceller = try Thread("canceller") {
      FaultPoints.with([FaultRule(.rename, path: ",cancel", .pause(pause))]) {
        let found = try? sent.cancel()
        result.signal { $0 = found }
      }
    }
    try eventually("the request is about to be made") { pause.isReached }
    try meeting.folder("members/printer/claimed").unlink(sent.name.text + "~1")
    pause.open()
    canceller.join()
    #expect(result.withLock { $0 } == .tooLate)
    #expect(try meeting.names("members/printer/claimed") == [])
  }

  /// A claimed message of a member of this machine is its receiver's alone.
  @Test func nothingIsRequestedOfAMemberOfThisMachine() throws {
    let sent = try printer.send(1, .quick())
    try claim()
    #expect(try sent.cancel() == .tooLate && printer.cancel(id: sent.id) == .tooLate)
    #expect(try !meeting.names("members/printer/claimed").contains { $0.hasSuffix(",cancel") })
  }

  @Test func theListingNamesTheMachine() throws {
    #expect(try meeting.container.members().allSatisfy { $0.machine == nil })
    try moveAway()
    let profile = try #require(
      try meeting.container.members().first { $0.name == "printer" })
    #expect(profile.machine == Self.machine && profile.info == ["place": "hall"])
    let findings = try meeting.container.storage.inspect()
    let told = findings.filter { $0.subject.contains("printer") }.map(\.what)
    #expect(told == ["its home is another machine, '\(Self.machine)'"])
  }
}
