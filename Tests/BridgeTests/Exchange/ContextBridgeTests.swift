import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Contexts between machines, over a real server, while bridges and the servers' data die.
@Suite(.blocking, .notSanitized("about processes")) struct ContextBridgeTests {
  private let machines: BridgedMachines?

  init() throws { machines = try BridgedMachines.start() }

  @Test func theLatestArrivesWhateverDies() throws {
    guard let machines else { return }
    let (here, there) = (machines.here, machines.there)
    let (al, bob) = (try here.container.join(as: "al"), try there.container.join(as: "bob"))
    try here.waitUntilRunning("bob")
    let heard = Heard<Int>()
    let watching = try bob.watchContexts { heard.add((try? $0.value(as: Int.self)) ?? -1) }
    var number = 0
    func set() throws {
      for _ in 0..<10 {
        number += 1
        try al.peer("bob").setContext(number, durability: .process)
      }
    }
    for round in 0..<4 {
      try set()
      let machine = round.isMultiple(of: 2) ? here : there
      try machine.kill()
      try machine.start()
    }
    try heard.wait("the latest", within: .seconds(60)) { $0.last == number }
    // The receiver's machine is off, and the servers lose what they have acknowledged.
    try there.kill()
    try set()
    try eventually("the context is on its way", within: .seconds(60)) {
      let status = try JSONPropertyList.decode(Array(here.status(["--json"]).utf8))
      let flows = status["machines"]?.dictionaryValue?.values.map { $0 } ?? []
      return flows.contains { $0["contexts"]?.intValue == 1 }
    }
    try set()
    try machines.server.server.kill()
    try machines.server.data.remove()
    try machines.server.server.start()
    try BridgedMachine.setUp(machines.server)
    try there.start()
    try heard.wait("the latest", within: .seconds(120)) { $0.last == number }
    let all = heard.all
    #expect(all == Set(all).sorted(), "\(all)")
    try eventually("the sender knows", within: .seconds(60)) {
      try al.peer("bob").sentContext?.isReceived == true
    }
    watching.stop()
  }
}
