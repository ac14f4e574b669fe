import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeRelay
import WormholeSyscalls

@testable import WormholeBridge

/// The times until which a bridge waits for its servers, and its thread for the next step.
///
/// A time in the past that no step of the bridge changes would let the thread spin.
@Suite(.blocking) struct BridgeDeadlineTests {
  /// The connection was lost in the middle of a publish, and the next one asks for the last bundle.
  @Test func aFlowThatAsksForItsLastBundleWaitsForTheReply() throws {
    let folder = try TemporaryDirectory()
    let one = try UnconnectedBridge(folder.path + "/c")
    let pair = try #require(one.bridge.pair("000000000000000b"))
    pair.retry = Instant.longAgo
    #expect(one.bridge.due(pair) == Instant.longAgo)
    pair.isPublishing = true
    #expect(one.bridge.due(pair) == nil)
    withExtendedLifetime(folder) {}
  }

  /// A question ends by its reply or by a time limit of its own, at which the connection wakes.
  @Test func aFlowWithAQuestionUnderWayWaitsForTheReply() throws {
    let folder = try TemporaryDirectory()
    let one = try UnconnectedBridge(folder.path + "/c")
    let machine = "000000000000000b"
    let proxy = try one.bridge.residents.proxy(of: .member("bob"), on: machine)
    let pair = try #require(one.bridge.pair(machine))
    try one.container.guest().peer("bob").send(1)
    #expect(try pair.out.collect(from: [proxy]))
    let bundle = try #require(
      try pair.out.bundle(generation: 1, size: 400 << 10, largest: 900 << 10))
    pair.out.note(published: bundle)
    // The other machine is asked how far it is.
    let due = Instant.longAgo + Bridge.confirmationTime
    #expect(one.bridge.due(pair) == due)
    pair.isAsking = true
    #expect(one.bridge.due(pair) == nil)
    // It is asked for the owner of a flow.
    pair.held = [(bundle, 0)]
    #expect(one.bridge.due(pair) == Instant.longAgo)
    pair.isVerifying = true
    #expect(one.bridge.due(pair) == nil)
    withExtendedLifetime(folder) {}
  }

  /// The servers have not acknowledged the record of this start, and the reader has begun anew.
  @Test func aClaimWaitsForAllRecords() throws {
    let server = try LyingServer(seed: 1, lies: .none)
    let connection = try RelayConnection(
      RelayAddress(server.address), RelayOptions(name: "claim", token: "secret"))
    let link = ServerLink(connection)
    defer { link.stop() }
    link.retry = Instant.longAgo
    #expect(link.nextClaim == Instant.longAgo, "the streams are asked for without a reader")
    let reader = StreamReader(
      link.jetStream, stream: "S", filter: "s.>", from: .lastPerSubject
    ) { _ in }
    link.records = reader
    #expect(link.nextClaim == nil)
    try eventually("the records are read") {
      _ = server.step(.now)
      connection.proceed(.now)
      reader.proceed(.now)
      return reader.isCaughtUp
    }
    #expect(link.nextClaim == Instant.longAgo)
  }

  /// The time limit is that of the first connection: later, the servers may be away for any time.
  @Test func aBridgeThatHasServedOutlastsItsTimeLimit() throws {
    let folder = try TemporaryDirectory()
    let server = try LyingServer(seed: 1, lies: .none)
    let one = try UnconnectedBridge(folder.path + "/c", server.address, patience: Duration.zero)
    let failures = Heard<String>()
    // Until the thread is joined, no other thread uses the bridge.
    nonisolated(unsafe) let bridge = one.bridge
    bridge.hasStarted = true
    let news = bridge.news
    let thread = try Thread("bridge") {
      do { try bridge.run() } catch { failures.add("\(error)") }
    }
    defer {
      news.stop()
      thread.join()
      withExtendedLifetime((folder, one)) {}
    }
    for number in 1...2 {
      try eventually("connection \(number)") {
        _ = server.step(.now)
        return server.counts.connections >= number || !failures.all.isEmpty
      }
      server.dropConnections()
    }
    #expect(failures.all == [])
  }
}
