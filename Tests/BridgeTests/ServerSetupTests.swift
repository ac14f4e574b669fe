import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeHubProtocol
import WormholePropertyLists
import WormholeRelay
import WormholeSyscalls

@testable import WormholeBridge

/// The setup of servers that have been set up before, or by another setup in the meantime.
@Suite(.blocking) struct ServerSetupTests {
  private static let later = #"{"format":2,"flows":2,"states":1}"#
  private static let other = #"{"format":1,"flows":3,"states":1}"#
  private static let same = #"{"format":1,"flows":2,"states":1}"#
  private static let taken =
    #"{"error":{"code":400,"err_code":10071,"description":"wrong sequence"}}"#
  /// The headers of a record.
  private static let head = [
    "NATS/1.0", "Nats-Stream: S", "Nats-Subject: whs.0.deployment", "Nats-Sequence: 1",
    "Nats-Time-Stamp: 2026-01-31T09:30:00Z", "", "",
  ].joined(separator: "\r\n")

  /// Sets a server up that stores no record.
  ///
  /// - Parameter records: the record at each look, nil for none; the last one stays.
  private func setUp(_ records: [String?]) throws -> [String] {
    let server = try LyingServer(seed: 1, lies: .none)
    var looks = 0
    server.script = { subject in
      if subject.hasPrefix("$JS.hub.API.STREAM.CREATE.") {
        let settings = #"{"name":"S","subjects":["s.>"],"num_replicas":1}"#
        let state = #"{"messages":0,"bytes":0,"first_seq":1,"last_seq":0}"#
        return ("", "{\"config\":\(settings),\"state\":\(state)}")
      }
      if subject == "whs.0.deployment" {
        return ("", Self.taken)
      }
      guard subject.hasPrefix("$JS.hub.API.DIRECT.GET.") else { return nil }
      defer { looks += 1 }
      guard let record = records[min(looks, records.count - 1)] else {
        return ("NATS/1.0 404 Message Not Found\r\n\r\n", "")
      }
      return (Self.head, record)
    }
    return try serve(server) { settings in
      try ServerSetup.run(settings, Deployment(flows: 2), replicas: 1)
    }
  }

  /// Serves a dialog, which runs on a thread of its own, until its end.
  private func serve<Value: Sendable>(
    _ server: LyingServer, _ dialog: @escaping @Sendable (Bridge.Settings) throws -> Value
  ) throws -> Value {
    var settings = Bridge.Settings(group: "g", address: try RelayAddress(server.address))
    settings.token = "secret"
    let outcome = Monitor<Result<Value, any Error>?>(nil)
    let thread = try Thread("dialog") { [settings] in
      let result = Result { try dialog(settings) }
      outcome.withLock { $0 = result }
    }
    defer { thread.join() }
    let result = try eventually("the dialog has ended") { () -> Result<Value, any Error>? in
      _ = server.step(.now)
      return outcome.withLock { $0 }
    }
    return try result.get()
  }

  /// The doctor waits for the heartbeats of quiet machines, whatever the limit of the command is.
  @Test func aPartOfADialogHasALimitOfItsOwn() throws {
    let server = try LyingServer(seed: 1, lies: .none)
    let settings = Bridge.Settings(group: "g", address: try RelayAddress(server.address))
    let dialog = try ServerDialog(settings, "test", until: .now)
    defer { dialog.connection.close() }
    let end = #expect(throws: BridgeEnd.self) { try dialog.turn(until: { false }) }
    #expect(end?.kind == .unavailable)
    dialog.extend(to: .now + .seconds(600))
    dialog.extend(to: .now)
    #expect(try !dialog.turn(until: { false }, within: .milliseconds(1)))
    withExtendedLifetime(server) {}
  }

  /// The operator learns at once what the next setup has to make.
  @Test func theDoctorNamesEachStreamThatIsMissing() throws {
    let server = try LyingServer(seed: 1, lies: .none)
    server.script = { subject in
      if subject.hasPrefix("$JS.hub.API.STREAM.INFO.") {
        return ("", #"{"error":{"code":404,"err_code":10059,"description":"stream not found"}}"#)
      }
      guard subject.hasPrefix("$JS.hub.API.DIRECT.GET.") else { return nil }
      return (Self.head, Self.same)
    }
    let folder = try TemporaryDirectory()
    let container = try SharedContainer(directory: folder.path + "/c")
    let found = try serve(server) { BridgeDoctor.run(container, $0) }
    let missing = found.filter { $0.what == "is missing" }
    #expect(
      missing.map(\.subject) == ["stream WHS_0", "stream WHF_0", "stream WHF_1"], "\(found)")
  }

  /// Without direct reads of a stream, no bridge finds the last bundle that it has sent there.
  @Test func theDoctorNamesEachSettingThatDiffers() throws {
    let week = #""max_age":604800000000000,"#
    let (flow, record) = (#""max_msgs_per_subject":64,"#, #""max_msgs_per_subject":1,"#)
    let (direct, indirect) = (#""allow_direct":true"#, #""allow_direct":false"#)
    let settings: [String: String] = [
      "WHS_0": #""subjects":["whs.0.>"],"# + record + direct,
      "WHF_0": #""subjects":["whf.0.>"],"# + week + flow + indirect,
      "WHF_1": #""subjects":["whf.1.>"],"# + flow + direct,
    ]
    let server = try LyingServer(seed: 1, lies: .none)
    server.script = { subject in
      guard !subject.hasPrefix("$JS.hub.API.DIRECT.GET.") else { return (Self.head, Self.same) }
      guard subject.hasPrefix("$JS.hub.API.STREAM.INFO."),
        let name = subject.split(separator: ".").last.map({ String($0) }), let own = settings[name]
      else { return nil }
      let config = "{\"name\":\"\(name)\",\"num_replicas\":1,\(own)}"
      let state = #"{"messages":0,"bytes":0,"first_seq":1,"last_seq":0}"#
      return ("", "{\"config\":\(config),\"state\":\(state)}")
    }
    let folder = try TemporaryDirectory()
    let container = try SharedContainer(directory: folder.path + "/c")
    let found = try serve(server) { BridgeDoctor.run(container, $0) }
      .filter { $0.subject.hasPrefix("stream ") }
    #expect(found.map(\.subject) == ["stream WHS_0", "stream WHF_0", "stream WHF_1"], "\(found)")
    let wrong = found.filter { $0.severity == .problem }.map(\.what)
    let start = "is not as 'wormhole bridge setup' makes it: "
    #expect(
      wrong == [
        start + "allow_direct is false and not true",
        start + "max_age is unlimited and not 604800s",
      ])
  }

  // MARK: The doctor of a machine

  /// What the doctor finds at servers with these records of the group, of which no bridge runs.
  private func diagnose(_ records: [HubMessage]) throws -> [Diagnosis] {
    let folder = try TemporaryDirectory()
    defer { withExtendedLifetime(folder) {} }
    let container = try SharedContainer(directory: folder.path + "/c")
    let storage = container.storage
    _ = try Place.open(BridgeFolder(of: storage), group: "g", storage.options.environment)
    let server = try LyingServer(seed: 1, lies: .none)
    server.log = records
    server.script = { subject in
      if subject.hasPrefix("whm.") { return ("NATS/1.0 503\r\n\r\n", "") }
      if subject.hasPrefix("whf.") || subject.hasPrefix("whs.") { return ("", Self.taken) }
      guard subject.hasPrefix("$JS.hub.API.DIRECT.GET.") else { return nil }
      return (Self.head, Self.same)
    }
    return try serve(server) { BridgeDoctor.run(container, $0) }
  }

  private static let (lost, away) = ("000000000000000b", "000000000000000c")

  private func record(_ machine: String, _ fate: MachineRecord.Fate?) -> HubMessage {
    HubMessage(
      "whs.0.g.x.\(machine)", MachineRecord(generation: 1, nonce: "n", fate: fate).bytes)
  }

  /// No bridge of the machine will ever answer.
  @Test func theDoctorAsksNoMachineThatWasGivenUp() throws {
    let found = try diagnose([record(Self.lost, .putBack), record(Self.away, nil)])
    let silent = found.filter { $0.what == "its bridge does not answer" }
    #expect(silent.map(\.subject) == ["machine \(Self.away)"], "\(found)")
  }

  /// The doctor asks 64 machines at a time, in several batches.
  @Test func theDoctorAsksEachMachineOfALargeGroup() throws {
    let machines = (1...130).map { "0000000000000" + String(0x100 + $0, radix: 16) }
    let found = try diagnose(machines.map { record($0, nil) })
    let silent = found.filter { $0.what == "its bridge does not answer" }
    #expect(silent.map(\.subject) == machines.map { "machine \($0)" })
  }

  /// Without a record, no message shows whether the machine may receive messages.
  @Test(arguments: [false, true]) func onlyARecordShowsThatRecordsArrive(_ isEmpty: Bool) throws {
    let found = try diagnose(isEmpty ? [] : [record(Self.away, nil)])
    let open = found.contains {
      $0.what.hasPrefix("could not try to receive messages and records, ")
    }
    #expect(open == isEmpty, "\(found)")
  }

  // MARK: A machine that is given up

  /// Gives the lost machine up, while the record of its member changes as often.
  ///
  /// - Returns: the number of free names, and the stream afterwards.
  private func giveUp(changes: Int) throws -> (count: Int, log: [HubMessage]) {
    let server = try LyingServer(seed: 1, lies: .none)
    let text = #"{"machine":"\#(Self.lost)","before":["\#(Self.away)"]}"#
    let home = HubMessage("whs.0.g.m.bob", Array(text.utf8))
    server.stored = "whs."
    server.log = [record(Self.lost, nil), home]
    var left = changes
    server.script = { [unowned server] subject in
      if subject.hasPrefix("whm.") { return ("NATS/1.0 503\r\n\r\n", "") }
      if subject == home.subject, left > 0 {
        left -= 1
        server.log.append(home)
      }
      guard subject.hasPrefix("$JS.hub.API.DIRECT.GET.") else { return nil }
      return (Self.head, Self.same)
    }
    let count = try serve(server) { try MachineEviction.run($0, Self.lost, drops: false) }
    return (count, server.log)
  }

  /// The command reads the records again, and marks the machine once.
  @Test func aRecordThatChangesDelaysTheEndOfALostMachine() throws {
    let (count, log) = try giveUp(changes: 2)
    #expect(count == 1)
    #expect(log.filter { $0.subject == "whs.0.g.x.\(Self.lost)" }.count == 2)
    let last = try #require(log.last)
    #expect(last.subject == "whs.0.g.m.bob")
    #expect(try JSONPropertyList.decode(last.payload)["machine"]?.stringValue == "")
  }

  /// A lost machine that reappears and a former home may still hand on messages: the next home
  /// accepts messages of the member from the machines that the record names.
  @Test func theRecordOfAFreeNameKeepsTheLostMachineAndTheHomesBefore() throws {
    let last = try #require(try giveUp(changes: 0).log.last)
    #expect(last.subject == "whs.0.g.m.bob")
    let free = try JSONPropertyList.decode(last.payload)
    #expect(free["machine"]?.stringValue == "")
    let before = free["before"]?.arrayValue?.compactMap(\.stringValue)
    #expect(before == [Self.lost, Self.away])
  }

  @Test func recordsThatKeepChangingEndTheCommand() throws {
    let error = #expect(throws: WormholeError.self) { _ = try giveUp(changes: 100) }
    #expect(error?.code == .conflict)
    #expect(error?.reason.contains("in each of 5 attempts") == true)
  }

  // MARK: Setups

  @Test func aLaterVersionsRecordIsRefused() throws {
    for records in [[Self.later], [nil, Self.later]] as [[String?]] {
      #expect(throws: BridgeEnd.laterSetup) { try setUp(records) }
    }
  }

  /// The server that replies has a copy of the stream, and the copy lacks the record of the other
  /// setup still.
  @Test func aRecordThatCannotBeReadYetIsNotTakenForTheOwn() {
    let end = #expect(throws: BridgeEnd.self) { try setUp([nil]) }
    #expect(end?.hint == "run the command again")
  }

  /// Each of two setups has found no record, and the other one was the first to store its own.
  @Test func aRecordThatWasStoredInTheMeantimeCounts() throws {
    for records in [[Self.other], [nil, Self.other]] as [[String?]] {
      let end = #expect(throws: BridgeEnd.self) { try setUp(records) }
      #expect(end?.hint == "use --flows 3 --states 1")
    }
    for records in [[Self.same], [nil, Self.same]] as [[String?]] {
      #expect(try setUp(records).count == 3)
    }
  }
}
