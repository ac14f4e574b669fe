internal import FoundationEssentials
package import WormholeContainerStorage
internal import WormholeSyscalls

/// Queues whose home becomes another machine, or this one.
extension Carrier {
  /// Returns the proxy of a queue whose home is another machine; made if need be.
  ///
  /// Each worker of this machine completes its claimed messages, and then works for the other
  /// machine. Until all workers have done so, the call is refused with
  /// ``WormholeError/Code-swift.struct/nameTaken``, and must be repeated.
  ///
  /// - Parameter term: how often the home has moved.
  package func proxy(
    ofQueue name: String, on machine: String, term: Int = 0
  ) throws(WormholeError) -> Proxy {
    let home = try container.storage.member(name, in: .queues)
    let known = try elsewhere(of: home)
    if known?.machine != machine || known?.isSettling == true {
      var next = try leave(home, known, to: machine, term)
      next.isSettling = false
      try hold(home) { () throws(WormholeError) in try home.write(next) }
    }
    return Proxy(self, home, .queue(name), machine)
  }

  /// Gives a queue of this machine away: its workers follow, and what they have claimed and not
  /// handled waits again, marked.
  ///
  /// All messages stay here until ``proxy(ofQueue:on:term:)``. The call is refused as that one, and
  /// may be repeated at any time, also after a kill.
  ///
  /// - Parameter before: the machines that were the home before.
  package func leave(
    _ queue: String, to machine: String, term: Int, before: [String] = []
  ) throws(WormholeError) {
    let home = try container.storage.member(queue, in: .queues)
    _ = try leave(home, elsewhere(of: home), to: machine, term, before)
  }

  private func leave(
    _ home: MemberDirectory, _ known: Elsewhere?, to machine: String, _ term: Int,
    _ before: [String] = []
  ) throws(WormholeError) -> Elsewhere {
    let now = container.storage.options.environment.sinceEpoch()
    var next = Elsewhere(machine: machine, since: Date(sinceEpoch: now))
    (next.term, next.isSettling) = (term, known?.isSettling ?? true)
    next.before =
      known?.machine == machine
      ? known?.before ?? [] : Elsewhere.joined(known?.followed ?? [], before)
    if known?.machine != machine {
      // From here on, a worker that begins is one of another machine's queue.
      try hold(home) { () throws(WormholeError) in try home.write(next) }
    }
    guard next.isSettling else { return next }
    try naming(Self.standing, home.name, at: home, QueuePatrol(home, "", container).returnEnded())
    let hasWorkers = try naming(Self.standing, home.name, at: home) {
      () throws(Errno) -> Bool in
      guard try home.workers().isEmpty else { return true }
      return try home.hasUnknownClaims()
    }
    guard !hasWorkers || Mutants.has(.moveWithWorkers) else {
      throw WormholeError(
        .nameTaken, Self.standing, home.name,
        because: "workers of this machine have not ended yet with what they have of the queue")
    }
    try returnClaims(of: home)
    return next
  }

  /// Puts what was claimed back into the inbox.
  ///
  /// Of a killed call, a message may be in both places; the claim follows.
  private func returnClaims(of home: MemberDirectory) throws(WormholeError) {
    let claims = try naming(Self.standing, home.name, at: home, home.claimedNames())
    for claimed in claims {
      let marked = try marked(claimed, in: home)
      try naming(Self.standing, home.name, at: home) { () throws(Errno) in
        guard let marked else {
          _ = try home.move(claimed.text, from: .claimed, .inbox, as: claimed.name.text)
          return
        }
        try home.place(
          marked, as: claimed.name.text, in: .inbox, durability: .power, replacing: true)
        try home.makeDurable(.inbox)
        _ = try home.remove(claimed.text, from: .claimed)
      }
    }
    guard !claims.isEmpty else { return }
    try naming(Self.standing, home.name, at: home) { () throws(Errno) in
      for part in [MemberDirectory.Part.inbox, .claimed] { try home.makeDurable(part) }
    }
  }

  /// The file of a claimed message, marked as possibly handled; nil if no handler has begun, or if
  /// the file is unreadable wherever it is.
  private func marked(
    _ claimed: ClaimedName, in home: MemberDirectory
  ) throws(WormholeError) -> [UInt8]? {
    guard claimed.attempt > 0 || claimed.isInterrupted else { return nil }
    let found: FoundFile
    do throws(WormholeError) {
      found = try home.read(claimed.text, in: .claimed, "read message")
    } catch {
      // Without its mark, the message would seem never to have been handled.
      if error.mayPass { throw error }
      return nil
    }
    guard case .sound(let bytes, _) = found else { return nil }
    return try? CarriedMessage(claimed.name, bytes, container.options.limits).repeated()
  }

  /// Makes a queue that was given away one of this machine again, before it had a proxy.
  package func keep(_ queue: String) throws(WormholeError) {
    guard let home = try container.storage.existingMember(queue, in: .queues),
      try elsewhere(of: home)?.isSettling == true
    else { return }
    try hold(home) { () throws(WormholeError) in try home.removeElsewhere() }
  }

  /// What is known of the home of a queue; nil if this machine is the home, or none is.
  package func home(ofQueue name: String) throws(WormholeError) -> Elsewhere? {
    guard let home = try container.storage.existingMember(name, in: .queues) else { return nil }
    return try elsewhere(of: home)
  }

  /// Calls a function while no process can take the name.
  func hold(
    _ home: MemberDirectory, _ body: () throws(WormholeError) -> Void
  ) throws(WormholeError) {
    let presence = try naming(Self.standing, home.name, at: home, home.takePresence())
    guard let presence else {
      throw WormholeError(
        .nameTaken, Self.standing, home.name, because: "another process has the name",
        hint: "end the other process")
    }
    defer { presence.release() }
    try body()
  }
}

extension Elsewhere {
  /// The earlier homes, once `machine` is no longer the home.
  var followed: [String] { Array((before + [machine].compactMap { $0 }).suffix(Self.mostBefore)) }
}
