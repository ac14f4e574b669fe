internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// Starting members of other machines.
///
/// A wake is a question with a reply, and the servers store nothing. The member's own machine
/// decides which program is started, and whether other machines may start the program.
extension Bridge {
  /// Wakes to and from other machines since the start of the bridge.
  struct WakeTraffic {
    var (asked, received) = (0, 0)
    /// Wakes without an answer, by the IDs of their records.
    var pending: [String: (proxy: Proxy, machine: String, attempt: Int)] = [:]
  }

  private enum WakeKey { static let (member, reason) = ("member", "error") }

  // MARK: The machine that asks

  func carryWakes(_ woken: Set<Carrier.Resident>) {
    for resident in woken {
      guard let proxy = residents[resident], let machine = proxy.machine else { continue }
      attempt { () throws(WormholeError) in
        if let id = try proxy.takeWake() { carry(wake: id, of: proxy, to: machine) }
      }
    }
  }

  private func carry(wake id: String, of proxy: Proxy, to machine: String) {
    let list: PropertyListValue = [WakeKey.member: .string(proxy.name)]
    guard let link, link.isServing, let bytes = try? BinaryEncoder().encode(list) else {
      return fail(wake: id, of: proxy, "there is no connection to machine '\(machine)'")
    }
    wakes.asked += 1
    let attempt = wakes.asked
    wakes.pending[id] = (proxy, machine, attempt)
    link.connection.request(
      Subjects.word(.wake, to: machine, from: place.machine), bytes,
      within: WakeWorker.patience + .seconds(5)
    ) { [weak self] result in
      // A later bridge may have the wake since.
      guard let self, self.wakes.pending[id]?.attempt == attempt else { return }
      self.wakes.pending[id] = nil
      switch result {
      case .success(let message):
        let reply = try? BinaryPropertyList.decode(message.payload)
        // Without a reason the member runs, and the next heartbeat shows it.
        if let reason = reply?[WakeKey.reason]?.stringValue {
          self.fail(wake: id, of: proxy, "machine '\(machine)': \(reason)")
        }
      case .failure(let failure) where failure.kind == .noResponders:
        self.fail(wake: id, of: proxy, "no bridge serves the member's machine, '\(machine)'")
      case .failure(let failure):
        self.fail(
          wake: id, of: proxy, "machine '\(machine)' has not answered: \(failure.reason)")
      }
    }
  }

  /// Asks a restarted bridge for the wakes that its predecessor has not answered.
  ///
  /// The container of the member's machine has the record of the start. So a running program is
  /// waited for, and only a dead program is started again.
  func repeatWakes(of machine: String) {
    guard !Mutants.has(.askWakesOnce) else { return }
    for (id, wake) in wakes.pending where wake.machine == machine {
      carry(wake: id, of: wake.proxy, to: machine)
    }
  }

  private func fail(wake id: String, of proxy: Proxy, _ reason: String) {
    attempt { () throws(WormholeError) in
      try proxy.failWake(id, reason)
    }
  }

  // MARK: The machine that is asked

  func take(wake message: RelayMessage, _ list: PropertyListValue, from machine: String) {
    guard let subject = message.reply, let member = list[WakeKey.member]?.stringValue else {
      return
    }
    let answer: WakeWorker.Answer = { [news] reason in
      var reply: [String: PropertyListValue] = [:]
      reply[WakeKey.reason] = reason.map { .string($0) }
      guard let bytes = try? BinaryEncoder().encode(PropertyListValue.dictionary(reply)) else {
        return
      }
      news.note(reply: bytes, to: subject)
    }
    guard settings.mayWake.contains(member) || Mutants.has(.wakeAny) else {
      log(.notice, "machine \(machine) may not wake '\(member)': use --may-wake")
      return answer("its bridge does not permit others to wake '\(member)', with --may-wake")
    }
    guard residents[.member(member)] == nil else {
      return answer("it is not the home of '\(member)'")
    }
    wakes.received += 1
    let waker = wakers[member] ?? WakeWorker(carrier, member)
    wakers[member] = waker
    waker.wake(answer)
  }
}
