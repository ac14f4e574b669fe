import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeBridge
import WormholeSyscalls

/// What `wormhole bridge status --json` and the page of `wormhole serve` show of the flows between
/// machines, the page in a real browser.
@Suite(.blocking, .notSanitized("the browser is a process of its own")) struct BridgePageTests {
  private static let isPossible = Browser.isInstalled(for: "flows between machines in a browser")
  private let machines: BridgedMachines?

  init() throws { machines = Self.isPossible ? try BridgedMachines.start() : nil }

  /// Opens the page of a machine's container.
  private func open(_ machine: BridgedMachine) throws -> (browser: Browser, server: Running) {
    let server = try Running(
      Programs.built("wormhole"), ["--container", machine.path, "serve"])
    let address = try eventually("the address") { () -> Substring? in
      try server.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().first
    }
    let browser = try Browser()
    try browser.open(String(address))
    return (browser, server)
  }

  /// An expression for the cells of the row of the list between machines with such a first cell.
  private func row(_ name: String) -> String {
    "([...document.querySelectorAll('section[aria-labelledby=of-machines] tbody tr')]"
      + ".map(r => [...r.cells].map(c => c.innerText.trim())).find(c => c[0] === '\(name)') || [])"
  }

  private func name(_ machine: BridgedMachine) throws -> String {
    try BridgeStatus.identity(of: machine.container).machine
  }

  private func send(_ number: Int, _ al: Member) throws {
    var options = SendOptions()
    options.durability = .process
    try al.peer("bob").send(number, options)
  }

  /// Name, kind, state, entries without a confirmation, age of the oldest in seconds, gaps.
  @Test func flowsAgesGapsAndConflictsAreShown() throws {
    guard let machines else { return }
    let (here, there) = (machines.here, machines.there)
    let (hereName, thereName) = (try name(here), try name(there))
    let al = try here.container.join(as: "al")
    let bob = try there.container.join(as: "bob")
    let heard = Heard<Int>()
    let receiving = try bob.receive(Int.self) { value, _ in heard.add(value) }
    try here.waitUntilRunning("bob")
    try send(1, al)
    try heard.wait("the first message", within: .seconds(60)) { $0 == [1] }
    let (browser, server) = try open(here)
    try browser.wait("\(row(hereName))[2] === 'serving'", "the machine itself")
    try browser.wait(
      "\(row(thereName)).slice(1, 6).join() === 'machine,1 members run,0,0,0'",
      "a flow that is confirmed")
    // The other bridge is away, and the servers lose a bundle.
    try there.kill()
    try send(2, al)
    try browser.wait(
      "\(row(thereName))[2] === 'no beat' && \(row(thereName))[3] === '1' "
        + "&& +\(row(thereName))[4] >= 2", "an entry without a confirmation, and its age")
    let json = try here.status(["--json"])
    #expect(json.contains("\"oldest\":") && json.contains("\"clock\":"), "\(json)")
    let purged = try machines.server.connect().request("$JS.hub.API.STREAM.PURGE.WHF_0")
    #expect(purged?.contains("\"success\":true") == true, "\(purged ?? "no reply")")
    try send(3, al)
    try browser.wait("\(row(thereName))[3] === '2'", "two entries without a confirmation")
    try waitUntilStored(machines.server)
    try there.start()
    try heard.wait("all messages", within: .seconds(60)) { $0 == [1, 2, 3] }
    let other = try open(there)
    try other.browser.wait("+\(row(hereName))[5] >= 1", "a gap")
    #expect(try there.status(["--json"]).contains(/"gaps":[1-9]/))
    try browser.wait("\(row(thereName))[3] === '0'", "that all is confirmed")
    // A machine that was away has a member of the same name.
    let third = try BridgedMachine(machines.folder.path + "/third", machines.server)
    let twin = try third.container.join(as: "bob")
    try third.start()
    let last = try open(third)
    try last.browser.wait(
      "\(row("bob"))[1] === 'conflict' && \(row("bob"))[2].length > 10", "the conflict")
    #expect(try third.status(["--json"]).contains("\"conflicts\":{\"bob\":"))
    for page in [browser, other.browser, last.browser] {
      #expect(try page.log().filter { !$0.contains("favicon") } == [])
    }
    receiving.stop()
    twin.leave()
    withExtendedLifetime((server, other.server, last.server)) {}
  }

  /// Waits until the servers have a bundle again.
  private func waitUntilStored(_ server: TestServer) throws {
    try eventually("the next bundle is stored", within: .seconds(60)) {
      try server.connect().request("$JS.hub.API.STREAM.INFO.WHF_0")?
        .contains(/"messages": ?[1-9]/) == true
    }
  }
}
