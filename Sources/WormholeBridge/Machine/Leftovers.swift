internal import Wormhole
internal import WormholeContainerStorage

/// The messages and flows of a container with a machine that was given up.
enum Leftovers {
  /// Puts messages in transit back, marked as possibly received before, or dead-letters everything
  /// that waits for the machine; then its proxies stand for no machine.
  ///
  /// Killed halfway, it is run again at the next start.
  static func settle(
    _ machine: String, _ fate: MachineRecord.Fate, _ residents: Residents
  ) throws(WormholeError) {
    let storage = residents.container.storage
    try deliverReceived(from: machine, residents)
    for proxy in residents.all(on: machine) {
      if fate == .deadLetter {
        for name in try proxy.waiting() { _ = try proxy.claim(name) }
      }
      for name in try proxy.claimed() {
        switch fate {
        case .putBack: try proxy.putBack(name)
        case .deadLetter: try proxy.giveUp(name, "machine \(machine) was given up")
        }
      }
      try proxy.makeDurable()
    }
    // A record claims its messages again, so it has to go before their names are free.
    try forgetFlow(to: machine, storage)
    for proxy in residents.all(on: machine) { try residents.release(proxy.resident) }
  }

  /// Delivers the received messages if the bridge was killed before their delivery; removes the
  /// pieces of messages that cannot follow any more.
  private static func deliverReceived(
    from machine: String, _ residents: Residents
  ) throws(WormholeError) {
    let storage = residents.container.storage
    guard try BridgeFolder(["in"], of: storage).names().contains(machine) else { return }
    let refusals = try Refusals(BridgeFolder(["out", machine], of: storage))
    try InFlow(from: machine, residents, refusals).end()
  }

  private static func forgetFlow(
    to machine: String, _ storage: Container
  ) throws(WormholeError) {
    guard try BridgeFolder(["out"], of: storage).names().contains(machine) else { return }
    let flow = try BridgeFolder(["out", machine], of: storage)
    let files = try flow.names()
    guard !files.isEmpty else { return }
    for file in files { try flow.remove(file) }
    try flow.makeDurable()
  }
}
