import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSyscalls

/// CinemaTime's phone and watch on two machines, unchanged.
@Suite(.blocking, .notSanitized("about processes")) struct CinemaBridgeTests {
  private let machines: BridgedMachines?

  init() throws { machines = try BridgedMachines.start() }

  private func environment(_ machine: BridgedMachine) -> [String] {
    ["WORMHOLE_CONTAINER=\(machine.path)", "NO_COLOR="]
  }

  private func cinema(_ machine: BridgedMachine, _ words: String...) throws -> ProcessOutcome {
    try run(Programs.built("cinematime"), words, environment: environment(machine))
  }

  @Test func phoneAndWatchSellOnTwoMachines() throws {
    guard let machines else { return }
    let (phone, watch) = (machines.here, machines.there)
    let first = try cinema(phone, "--as", "phone", "buy", "34340", "--yes")
    #expect(first.status == .exited(0), "\(first.errors)")
    let naming = try run(
      Programs.built("wormhole"), ["--container", phone.path, "bridge", "channel", "tickets"])
    #expect(naming.status == .exited(0), "\(naming.errors)")
    try eventually("the watch has the ticket", within: .seconds(60)) {
      try watch.container.channel("tickets", of: PropertyListValue.self).latest != nil
    }
    // The watch buys, and the phone sees it.
    let second = try eventually("the home can be reached", within: .seconds(60)) {
      let outcome = try cinema(watch, "--as", "watch", "buy", "34340", "--yes", "--for", "anna")
      return outcome.status == .exited(69) ? nil : outcome
    }
    #expect(second.status == .exited(0), "\(second.errors)")
    #expect(try sold(phone) == 2)
    // Each seat is sold once, wherever.
    let again = try cinema(watch, "--as", "watch", "buy", "34340", "--yes", "--for", "anna")
    #expect(again.status == .exited(1), "\(again.errors)")
    // Cut off, the watch sells nothing, and the phone goes on.
    try machines.server.server.kill()
    try eventually("the watch is cut off", within: .seconds(60)) {
      let refused = try cinema(watch, "--as", "watch", "buy", "34340", "--yes", "--for", "eve")
      return refused.status == .exited(69)
    }
    let third = try cinema(phone, "--as", "phone", "buy", "34340", "--yes", "--for", "eve")
    #expect(third.status == .exited(0), "\(third.errors)")
    #expect(try sold(watch) == 2 && sold(phone) == 3)
    // Healed.
    try machines.server.server.start()
    try eventually("the watch sees the sale", within: .seconds(60)) { try sold(watch) == 3 }
    let fourth = try eventually("the home can be reached again", within: .seconds(60)) {
      let outcome = try cinema(watch, "--as", "watch", "buy", "34340", "--yes", "--for", "dan")
      return outcome.status == .exited(69) ? nil : outcome
    }
    #expect(fourth.status == .exited(0), "\(fourth.errors)")
    #expect(try sold(phone) == 4)
    let rows = try pageRows(watch) { $0.count == 2 }
    #expect(rows.map { $0["kind"]?.stringValue } == ["this machine", "channel"])
    #expect(rows[1]["name"]?.stringValue == "tickets")
    let standing = rows[1]["standing"]?.stringValue ?? ""
    #expect(try standing.hasPrefix("home \(name(of: phone)), version"), "\(standing)")
  }

  private func name(of machine: BridgedMachine) throws -> String {
    let status = try JSONPropertyList.decode(Array(machine.status(["--json"]).utf8))
    return try #require(status["machine"]?.stringValue)
  }

  /// The table *Between machines* of `wormhole serve`.
  private func pageRows(
    _ machine: BridgedMachine, _ isIt: ([PropertyListValue]) -> Bool
  ) throws -> [PropertyListValue] {
    let server = try Running(Programs.built("wormhole"), ["--container", machine.path, "serve"])
    let address = try eventually("the address", within: .seconds(60)) {
      try server.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().first
    }
    let parts = address.split(separator: "/")
    let port = try #require(Int(parts[1].split(separator: ":")[1]))
    let rows = try eventually("the rows", within: .seconds(60)) { () -> [PropertyListValue]? in
      let connection = try WebConnection(port: port)
      try connection.ask("/\(parts[2])/state")
      let state = try JSONPropertyList.decode(Array(connection.reply().body.utf8))
      return state["machines"]?["rows"]?.arrayValue.flatMap { isIt($0) ? $0 : nil }
    }
    try server.child.send(.terminate)
    _ = try server.outcome()
    return rows
  }

  private func sold(_ machine: BridgedMachine) throws -> Int? {
    try machine.container.channel("tickets", of: PropertyListValue.self).value?["sold"]?.intValue
  }

  /// The watch's app requests the image of a ticket, and the phone's app sends the file.
  @Test func theImageOfATicketCrosses() throws {
    guard let machines else { return }
    let (phone, watch) = (machines.here, machines.there)
    #expect(try cinema(phone, "--as", "phone", "buy", "34340", "--yes").status == .exited(0))
    let naming = try run(
      Programs.built("wormhole"), ["--container", phone.path, "bridge", "channel", "tickets"])
    #expect(naming.status == .exited(0), "\(naming.errors)")
    let apps = try [(phone, "phone"), (watch, "watch")].map { machine, role in
      try Running(
        Programs.built("cinematime"), ["--as", role, "run", "--feed"],
        environment: environment(machine))
    }
    try phone.waitUntilRunning("watch")
    try watch.waitUntilRunning("phone")
    try eventually("the watch has the image", within: .seconds(90)) {
      let folder = watch.path + ".watch"
      guard let album = try? Descriptor.open(path: folder, [.readOnly, .directory]) else {
        return false
      }
      return try album.names().contains { $0.contains("34340") }
    }
    // The page has the flow.
    let other = try name(of: phone)
    _ = try pageRows(watch) { rows in
      rows.contains {
        $0["kind"]?.stringValue == "machine" && $0["name"]?.stringValue == other
      }
    }
    for app in apps {
      try? app.child.send(.terminate)
      _ = try app.outcome()
    }
  }
}
