import TestSupport
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholeRelay
import WormholeSyscalls

extension Peer {
  /// Carries as the command does, with the faults of this process.
  static func bridge(
    _ path: String, _ group: String, _ address: String, _ tokenFile: String
  ) throws {
    var options = Options()
    options.log = { entry in
      if entry.level >= .warning { try? say(entry.text, on: .error) }
    }
    let container = try SharedContainer(directory: path, options: options)
    var settings = Bridge.Settings(group: group, address: try RelayAddress(address))
    settings.token = try TokenFile.read(tokenFile)
    let news = try BridgeNews()
    guard let lock = try BridgeLock.take(container, news) else { return }
    let bridge = try Bridge(container, settings, news, lock) { try? say("carrying") }
    try bridge.run()
  }
}
