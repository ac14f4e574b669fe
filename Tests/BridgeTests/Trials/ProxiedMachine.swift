import TestSupport
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholeRelay
import WormholeSyscalls

/// A container with a bridge on a thread, which connects through a proxy that may lie.
final class ProxiedMachine: Sendable {
  let container: SharedContainer
  let member: Member
  let proxy: Monitor<SharedProxy>
  private let news: BridgeNews
  private let end = Monitor<(isOver: Bool, reason: String?)>((false, nil))
  private let threads: Monitor<[Thread]> = Monitor([])

  // Used inside of a monitor only.
  final class SharedProxy: @unchecked Sendable {
    let proxy: LyingProxy
    init(_ proxy: LyingProxy) { self.proxy = proxy }
  }

  init(
    _ path: String, _ member: String, _ server: TestServer, group: String, _ seed: UInt64,
    change: (LyingProxy) -> Void = { _ in }
  ) throws {
    container = try SharedContainer(directory: path)
    self.member = try container.join(as: member)
    let lying = try LyingProxy(to: server.port, seed: seed)
    change(lying)
    proxy = Monitor(SharedProxy(lying))
    var settings = Bridge.Settings(group: group, address: try RelayAddress(lying.address))
    settings.token = server.token
    news = try BridgeNews()
    let (container, news, end, proxy) = (self.container, self.news, self.end, self.proxy)
    let pump = try Thread("proxy") {
      while !end.withLock({ $0.isOver }) {
        let hasWorked = proxy.withLock { $0.proxy.step(.now) }
        if !hasWorked { let _: Void? = end.wait(until: .now + .milliseconds(2)) { _ in nil } }
      }
    }
    let bridge = try Thread("bridge") { [settings] in
      do {
        guard let lock = try BridgeLock.take(container, news) else { return }
        try Bridge(container, settings, news, lock).run()
      } catch {
        end.withLock { $0.reason = "\(error)" }
      }
    }
    threads.withLock { $0 = [pump, bridge] }
  }

  var failure: String? { end.withLock { $0.reason } }

  func beHonest() { proxy.withLock { $0.proxy.isHonest = true } }

  func stop() -> [String: Int] {
    news.stop()
    let threads = threads.withLock { $0 }
    threads[1].join()
    end.signal { $0.isOver = true }
    threads[0].join()
    member.leave()
    return proxy.withLock { $0.proxy.counts }
  }
}
