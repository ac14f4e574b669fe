package import Wormhole
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Makes a container that was refused a machine of its own: a copy, or one restored from a backup.
///
/// Nobody can know which of its messages in transit the other copy has sent, or will send. So they
/// are sent again under the new identity, marked as possibly received before, or dead-lettered. The
/// names of members stay with the machine that has them.
package enum MachineRejoin {
  /// Returns how many messages were in transit.
  ///
  /// Killed halfway, it is run again.
  ///
  /// - Parameter drops: whether to dead-letter messages in transit.
  package static func run(
    _ container: SharedContainer, drops: Bool
  ) throws(WormholeError) -> Int {
    let folder = try BridgeFolder(of: container.storage)
    let operation = "make a new machine of"
    let place = try present(folder, container, operation)
    guard let lock = try BridgeLock.take(folder) else {
      throw WormholeError(
        .conflict, operation, container.directory, because: "a bridge serves the container",
        hint: "end the bridge first")
    }
    defer { withExtendedLifetime(lock) {} }
    let carrier = try Carrier(container)
    var count = 0
    for proxy in try carrier.proxies() {
      for name in try proxy.claimed() {
        if drops {
          try proxy.giveUp(name, "it was in transit when the container became another machine")
        } else {
          try proxy.putBack(name)
        }
        count += 1
      }
      try proxy.makeDurable()
    }
    try forgetFlows(container.storage)
    if let place {
      try Place.replace(place, folder, container.storage.options.environment)
    } else {
      try folder.remove(Place.fileName)
      try folder.makeDurable()
    }
    return count
  }

  /// The present machine; nil if its file is damaged: then the next bridge makes a new machine.
  private static func present(
    _ folder: BridgeFolder, _ container: SharedContainer, _ operation: String
  ) throws(WormholeError) -> Place? {
    guard let found = try ignoringDamage({ () throws(WormholeError) in try Place.read(folder) })
    else { return nil }
    if let found { return found }
    throw WormholeError(
      .notFound, operation, container.directory,
      because: "no bridge has ever served this container")
  }

  /// What was bound to numbers has no meaning under another identity.
  private static func forgetFlows(_ storage: Container) throws(WormholeError) {
    let out = try BridgeFolder(["out"], of: storage)
    for machine in try out.names() where Incarnation(rawValue: machine) != nil {
      let flow = try BridgeFolder(["out", machine], of: storage)
      for file in try flow.names() {
        if file.ends(with: Refusals.mark) {
          guard try isDamaged(file, flow) else { continue }
        }
        try flow.remove(file)
      }
      try flow.makeDurable()
    }
    // What was received stays, except for what no bridge can read: no flow would go on.
    let incoming = try BridgeFolder(["in"], of: storage)
    for machine in try incoming.names() where Incarnation(rawValue: machine) != nil {
      let flow = try BridgeFolder(["in", machine], of: storage)
      for file in try flow.names()
      where file == InFlow.cursorName || file.ends(with: KeptMessages.mark) {
        if try isDamaged(file, flow) { try flow.remove(file) }
      }
      try flow.makeDurable()
    }
    // The homes know the changes by the machine that has asked.
    let changes = try BridgeFolder([ChannelTraffic.changesName], of: storage)
    for file in try changes.names() { try changes.remove(file) }
  }

  private static func isDamaged(
    _ file: String, _ folder: BridgeFolder
  ) throws(WormholeError) -> Bool {
    guard let list = try ignoringDamage({ () throws(WormholeError) in try folder.read(file) })
    else { return true }
    return file == InFlow.cursorName && list.map { FlowCursor($0) == nil } ?? false
  }
}
