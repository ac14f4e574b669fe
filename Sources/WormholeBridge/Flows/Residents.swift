package import Wormhole
internal import WormholeContainerStorage

/// The proxies of a bridge: one for each member and guest of another machine.
package final class Residents {
  package let carrier: Carrier
  package let container: SharedContainer
  private let watch: CarrierWatch?
  private var proxies: [Carrier.Resident: Proxy] = [:]
  /// The machine that is the home of a member, as the servers have it.
  package var home: (String) -> String? = { _ in nil }

  /// - Parameter watch: watches each proxy, too.
  package init(
    _ container: SharedContainer, _ carrier: Carrier, _ watch: CarrierWatch? = nil
  ) throws(WormholeError) {
    (self.container, self.carrier, self.watch) = (container, carrier, watch)
    for proxy in try carrier.proxies() { try keep(proxy) }
  }

  private func keep(_ proxy: Proxy) throws(WormholeError) {
    // A proxy without a watch would stand still: it is opened again.
    try watch?.add(proxy)
    proxies[proxy.resident] = proxy
  }

  /// The proxy of a member or a guest, made if need be.
  ///
  /// A name whose home is a third machine is refused.
  package func proxy(
    of resident: Carrier.Resident, on machine: String
  ) throws(WormholeError) -> Proxy {
    if let known = proxies[resident] {
      guard known.machine != machine else { return known }
      throw WormholeError(
        .conflict, "stand in for", resident.name,
        because: "its home is machine \(known.machine ?? "that cannot be read")")
    }
    let proxy = try carrier.proxy(of: resident, on: machine)
    try keep(proxy)
    return proxy
  }

  /// Refuses a sender that is not one of the machine; makes no proxy.
  package func check(_ sender: Carrier.Resident, isOf machine: String) throws(WormholeError) {
    guard !Mutants.has(.trustSenders) else { return }
    if case .member(let name) = sender, let home = home(name), home != machine {
      throw WormholeError(
        .conflict, "receive messages of", name, because: "its home is machine \(home)")
    }
    if let known = proxies[sender], known.machine == machine { return }
    try carrier.check(sender, isOf: machine)
  }

  package subscript(resident: Carrier.Resident) -> Proxy? { proxies[resident] }

  package var all: some Collection<Proxy> { proxies.values }

  package func all(on machine: String) -> [Proxy] {
    proxies.values.filter { $0.machine == machine }
  }

  /// Opens the proxies of a machine again: another tool may have removed a directory.
  ///
  /// After a failure, the caller must repeat the call: the bridge drops an outcome for a member
  /// without a proxy.
  package func reopen(_ machine: String) throws(WormholeError) {
    let found = try carrier.proxies()
    for proxy in all(on: machine) {
      proxies[proxy.resident] = nil
      watch?.remove(proxy)
      proxy.disappear()
    }
    for proxy in found where proxies[proxy.resident] == nil { try keep(proxy) }
  }

  /// The directory of the proxy was removed.
  package func drop(_ resident: Carrier.Resident) {
    guard let proxy = proxies.removeValue(forKey: resident) else { return }
    watch?.remove(proxy)
  }

  /// The machines that have proxies here.
  package var machines: Set<String> { Set(proxies.values.compactMap(\.machine)) }
}
