import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// What a carrier leaves on the disk before a power cut, and what it finds damaged or misdated.
@Suite(.blocking) struct CarrierPowerTests {
  private static let machine = "0123456789abcdef"

  private let meeting: Meeting
  private let carrier: Carrier
  private let printer: Proxy

  init() throws {
    meeting = try Meeting()
    carrier = try Carrier(meeting.another())
    printer = try carrier.proxy(of: .member("printer"), on: Self.machine)
  }

  /// Sends a message to the printer; returns its name there.
  private func send(_ number: Int) throws -> MessageName {
    try meeting.container.peer("printer").send(number, .quick())
    return try #require(try printer.waiting().last)
  }

  /// The file that waits again is a new one, and the earlier file is removed.
  @Test(arguments: [nil, "printer/inbox"])
  func aMessageIsPutBackBeforeItsEarlierFileGoes(_ path: String?) throws {
    let name = try send(1)
    #expect(try printer.claim(name))
    let rule = FaultRule(.fsync, path: path, persistent: true, .fail(.inputOutput))
    var error: WormholeError?
    try FaultPoints.with([rule]) { error = try failure { try printer.putBack(name) } }
    #expect(error?.errno == Errno.inputOutput.rawValue)
    #expect(try printer.claimed() == [name])
    try printer.putBack(name)
    #expect(try printer.claimed() == [])
    #expect(try printer.waiting() == [name])
  }
}
