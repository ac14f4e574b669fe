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
  /// The machines that were the home of a member before.
  package var formerHomes: (String) -> [String] = { _ in [] }
  /// The machines that were the home of a queue of this machine before.
  var formerQueueHomes: (String) -> [String] = { _ in [] }
  /// The proxies that become members of this machine as soon as nothing is in transit to them.
  private var leaving: Set<Carrier.Resident> = []

  /// - Parameter watch: watches each proxy, too.
  package init(
    _ container: SharedContainer, _ carrier: Carrier, _ watch: CarrierWatch? = nil
  ) throws(WormholeError) {
    (self.container, self.carrier, self.watch) = (container, carrier, watch)
    for proxy in try carrier.proxies() {
      if try keepIfOpen(proxy) { proxy.sweepFiles() }
    }
  }

  /// Keeps a proxy, unless the owner has closed a directory of the proxy to this user.
  ///
  /// The other proxies continue until an outcome for the closed proxy arrives.
  private func keepIfOpen(_ proxy: Proxy) throws(WormholeError) -> Bool {
    do throws(WormholeError) {
      try keep(proxy)
      return true
    } catch {
      guard error.code == .permissionDenied || error.code == .refused else { throw error }
      container.storage.log(
        .warning, "cannot carry for '\(proxy.name)': \(error)",
        about: LogSubject(member: proxy.name), because: error)
      return false
    }
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

  /// The proxy of a message's receiver, whichever machine is the home by now; nil if programs of
  /// this machine may have the name.
  ///
  /// A proxy with a directory that cannot be read at present is an error: its messages still wait.
  func receiver(_ resident: Carrier.Resident) throws(WormholeError) -> Proxy? {
    if let known = proxies[resident] { return known }
    guard let found = try carrier.existingProxy(of: resident) else { return nil }
    try keep(found)
    return found
  }

  /// Refuses a sender of a third machine; makes no proxy.
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

  /// Whether messages to a proxy are for its machine, and not for a program of this one.
  func carries(_ proxy: Proxy) -> Bool { !leaving.contains(proxy.resident) }

  /// Whether the sender of a message is a member or a guest of another machine.
  func isElsewhere(_ sender: MessageName.Sender?) -> Bool {
    guard let sender, let resident = try? Carrier.Resident(sender) else { return false }
    return proxies[resident].map { carries($0) } ?? false
  }

  /// The proxy of a member or a queue that has a home elsewhere.
  func proxy(elsewhere receiver: Carrier.Resident) -> Proxy? {
    proxies[receiver].flatMap { carries($0) ? $0 : nil }
  }

  /// Whether a machine may report on messages to a member, or hand messages on to it.
  func isHome(_ machine: String, of proxy: Proxy) -> Bool {
    proxy.machine == machine || wasHome(machine, of: proxy.resident)
  }

  /// Whether a machine was the home of a member or a queue before.
  func wasHome(_ machine: String, of resident: Carrier.Resident) -> Bool {
    switch resident {
    case .member(let name): formerHomes(name).contains(machine)
    case .queue(let name):
      formerQueueHomes(name).contains(machine)
        || (try? carrier.home(ofQueue: name))?.before.contains(machine) == true
    case .guest: false
    }
  }

  /// Lets a proxy stand for a machine, whichever it stood for before; made if need be.
  package func move(_ member: String, to machine: String) throws(WormholeError) {
    let resident = Carrier.Resident.member(member)
    leaving.remove(resident)
    guard let known = proxies[resident], known.machine != machine else {
      _ = try proxy(of: resident, on: machine)
      return
    }
    let moved = try known.moved(to: machine)
    drop(resident)
    try keep(moved)
  }

  /// The proxy of a queue that a machine states as its own; follows the home if `mayMove` says so.
  func proxy(
    ofQueue name: String, on machine: String, term: Int, mayMove: (String) -> Bool
  ) throws(WormholeError) -> Proxy {
    let resident = Carrier.Resident.queue(name)
    // This machine may have given the queue away before the proxy could be released.
    leaving.remove(resident)
    guard let known = proxies[resident] else {
      let proxy = try carrier.proxy(ofQueue: name, on: machine, term: term)
      try keep(proxy)
      return proxy
    }
    guard let present = known.machine, let home = try carrier.home(ofQueue: name) else {
      return known
    }
    guard present != machine else {
      // The home may have moved away and back meanwhile.
      if home.term < term { try known.note(term: term) }
      return known
    }
    // A decision of this machine is in the directory already.
    guard home.machine == machine || home.term < term && mayMove(present) else { return known }
    let moved = try known.moved(to: machine, term: term)
    drop(resident)
    try keep(moved)
    return moved
  }

  /// Makes a proxy a member of this machine, or one of no machine.
  ///
  /// Until all messages in transit have come back or have arrived, this is refused with
  /// ``WormholeError/Code-swift.struct/conflict``, and must be repeated.
  ///
  /// - Parameter isHome: whether this machine is the member's home now, and not only free to be.
  package func release(
    _ resident: Carrier.Resident, isHome: Bool = false
  ) throws(WormholeError) {
    guard let known = proxies[resident] else { return }
    leaving.insert(resident)
    try known.release(isHome: isHome)
    drop(resident)
    leaving.remove(resident)
  }

  package var all: some Collection<Proxy> { proxies.values }

  package func all(on machine: String) -> [Proxy] {
    proxies.values.filter { $0.machine == machine }
  }

  /// The proxies with entries for a machine: its own, and those of members whose home it was.
  ///
  /// The machine still has the messages that such a member has sent from there.
  package func all(for machine: String) -> [Proxy] {
    proxies.values.filter { $0.machine == machine || pastHomes(of: $0.resident).contains(machine) }
  }

  /// The machines that were the home of a sender before.
  func pastHomes(of resident: Carrier.Resident) -> [String] {
    if case .member(let name) = resident { formerHomes(name) } else { [] }
  }

  /// Opens the proxies of a machine again: another tool may have removed a directory.
  ///
  /// After a failure, the caller must repeat the call: a closed proxy carries nothing.
  package func reopen(_ machine: String) throws(WormholeError) {
    let found = try carrier.proxies()
    for proxy in all(on: machine) {
      proxies[proxy.resident] = nil
      watch?.remove(proxy)
      proxy.disappear()
    }
    for proxy in found where proxies[proxy.resident] == nil { _ = try keepIfOpen(proxy) }
  }

  /// The directory of the proxy was removed.
  package func drop(_ resident: Carrier.Resident) {
    guard let proxy = proxies.removeValue(forKey: resident) else { return }
    watch?.remove(proxy)
  }

  /// The machines that have proxies here.
  package var machines: Set<String> { Set(proxies.values.compactMap(\.machine)) }
}
