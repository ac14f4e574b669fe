package import Wormhole
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Moving the home of a queue.
///
/// Only an operator's command on the present home begins a move, as a change of the queue's file in
/// a ``QueueList``. After a kill, each of the following steps may be repeated:
///
/// 1. The home lends no further message, and waits for the end of lent messages, for a time.
/// 2. The home's file names the heir: from here on, no machine is the home.
/// 3. The home's own workers end with their messages. Messages that were not handled wait again.
/// 4. The heartbeats name the heir. The heir writes its own file, and states the queue.
/// 5. The former home sends all waiting messages to the heir, as the programs of any machine do.
///
/// No two machines ever have the queue at the same time. Each move counts in the queue's term, so
/// a late statement of a former home begins no move.
extension Bridge {
  /// Begins the move of a queue whose home is this machine.
  package static func moveQueue(
    _ name: String, to machine: String, of container: SharedContainer
  ) throws(WormholeError) {
    let operation = "move queue"
    let list = try QueueList(of: container.storage)
    try list.changing(name, within: .seconds(10)) { () throws(WormholeError) in
      guard var entry = try list.entry(name), entry.heir == nil else {
        throw WormholeError(
          .conflict, operation, name, because: "this machine is not its home",
          hint: "run the command on the home, which 'wormhole bridge status' names; if the home is "
            + "lost, give it up with 'wormhole bridge evict', and name the queue anew")
      }
      guard try Place.read(BridgeFolder(of: container.storage))?.machine != machine else {
        throw WormholeError(
          .conflict, operation, name, because: "this machine is its home already")
      }
      entry.move = machine
      try list.replace(name, by: entry)
    }
  }

  /// Stores the entry of a queue; false if an operator has changed the entry since the last look.
  ///
  /// The operator's word is then seen by a look at once, and decides whether the step is repeated.
  func replace(
    queue name: String, by entry: QueueList.Entry?
  ) throws(WormholeError) -> Bool {
    let list = try QueueList(of: container.storage)
    guard try list.replace(name, queues.entries[name], by: entry) else {
      queues.nextLook = .longAgo
      return false
    }
    queues.entries[name] = entry
    return true
  }

  func moveQueues(_ now: Instant) {
    for (name, entry) in queues.entries where !queues.unread.contains(name) {
      attempt(queue: name) { () throws(WormholeError) in
        if let heir = entry.heir {
          try leave(queue: name, entry, to: heir)
        } else {
          try settle(queue: name)
          if let machine = entry.move { try move(queue: name, entry, to: machine, now) }
        }
      }
    }
  }

  // MARK: The former home

  private func move(
    queue name: String, _ entry: QueueList.Entry, to machine: String, _ now: Instant
  ) throws(WormholeError) {
    // Heartbeats of the heir may have been held up on the way. The operator takes the command back.
    guard evicted[machine] == nil else {
      queues.draining[name] = nil
      queues.conflicts[name] = "its home is not moved: the new home, \(machine), was given up"
      return
    }
    // A machine that does not exist would never take the queue.
    guard beats[machine] != nil || queues.draining[name] != nil else {
      queues.conflicts[name] =
        "its home is not moved: the new home, \(machine), cannot be reached"
      return
    }
    let began = queues.draining[name] ?? now
    queues.draining[name] = began
    let lenders = queues.lenders.filter { $0.key.queue == name }
    for queue in lenders.values { queue.setRoom(0) }
    let lent = lenders.values.reduce(0) { $0 + $1.count }
    guard lent == 0 || now - began > QueueTraffic.longestDrain else {
      queues.conflicts[name] = "its home moves, and waits for \(lent) messages"
      return
    }
    var next = entry
    (next.heir, next.move, next.term) = (machine, nil, entry.term.addingClamped(1))
    next.before = Array((entry.before + [place.machine]).suffix(Elsewhere.mostBefore))
    guard try replace(queue: name, by: next) else { return }
    queues.settled.remove(name)
    // The queue may have been given away before, and have come back.
    queues.free.remove(name)
    queues.draining[name] = nil
    for (lender, queue) in lenders {
      // Messages that are still lent go back, marked.
      queue.stop()
      (queues.lenders[lender], queues.late[lender]) = (nil, nil)
    }
    try leave(queue: name, next, to: machine)
  }

  private func leave(
    queue name: String, _ entry: QueueList.Entry, to heir: String
  ) throws(WormholeError) {
    guard evicted[heir] == nil else {
      // The heir has not taken the queue, or is lost with the queue.
      try carrier.keep(name)
      try QueueList(of: container.storage).keep(term: entry.term, of: name)
      guard try replace(queue: name, by: nil) else { return }
      queues.free.remove(name)
      queues.conflicts[name] = nil
      return
    }
    guard !queues.free.contains(name) else { return }
    queues.conflicts[name] = "its home moves to machine \(heir)"
    try carrier.leave(name, to: heir, term: entry.term, before: entry.before)
    queues.free.insert(name)
    link?.nextBeat = .longAgo
  }

  /// The statement of the next heartbeat about the queues that were given away.
  var heirs: [String: Heartbeat.Heir] {
    queues.entries.filter { queues.free.contains($0.key) }.compactMapValues { entry in
      entry.heir.map { Heartbeat.Heir(machine: $0, term: entry.term, before: entry.before) }
    }
  }

  // MARK: The new home

  /// Takes a queue whose home has become this machine.
  func inherit(queue name: String, _ heir: Heartbeat.Heir, from machine: String) {
    attempt(queue: name) { () throws(WormholeError) in
      let home = try carrier.home(ofQueue: name)
      let known = queues.entries[name]
      let term = known?.term ?? home?.term ?? -1
      var next = heir.term
      if heir.term <= term {
        guard heir.term == term else { return }
        guard let known else {
          guard let own = followed(home, from: machine) else { return }
          return try passOn(queue: name, own, heir)
        }
        guard follows(known, machine) else { return }
        next = term.addingClamped(1)
      }
      var entry = QueueList.Entry()
      entry.term = next
      entry.before = Elsewhere.joined(known?.before ?? [], heir.before)
      // A command about a home in a conflict stays.
      if known?.heir == nil { entry.move = known?.move }
      guard try replace(queue: name, by: entry) else { return }
      queues.settled.remove(name)
      link?.nextBeat = .longAgo
      try settle(queue: name)
    }
  }

  /// The former entry of a queue that this machine has given away, and whose heir is known here.
  private func followed(_ home: Elsewhere?, from machine: String) -> QueueList.Entry? {
    guard let home, let heir = home.machine, heir != machine else { return nil }
    var entry = QueueList.Entry()
    (entry.heir, entry.term, entry.before) = (heir, home.term, home.before + [place.machine])
    return entry
  }

  /// Gives the queue to the next home again, with a later term.
  ///
  /// Of homes in a conflict, one has given the queue to this machine, which has given it away, too,
  /// and has heard the next home. With equal terms, the giver would wait for a later term for ever.
  private func passOn(
    queue name: String, _ own: QueueList.Entry, _ heir: Heartbeat.Heir
  ) throws(WormholeError) {
    var entry = own
    entry.term = own.term.addingClamped(1)
    entry.before = Elsewhere.joined(heir.before, own.before)
    guard try replace(queue: name, by: entry) else { return }
    link?.nextBeat = .longAgo
  }

  /// Follows an heir that has given the queue away, too, in a conflict of several homes.
  ///
  /// The homes may give the queue on in a ring, and then nobody is the home. A machine follows only
  /// heirs whose names come after its own. So only the machine with the first name arrives at
  /// itself, and takes the queue; all other machines stop before the first name, in each order of
  /// heartbeats.
  func follow(queue name: String, _ heir: Heartbeat.Heir, from machine: String) {
    guard var entry = queues.entries[name], entry.term == heir.term,
      follows(entry, machine), evicted[heir.machine] == nil
    else { return }
    attempt(queue: name) { () throws(WormholeError) in
      entry.heir = heir.machine
      entry.before = Elsewhere.joined(heir.before, entry.before)
      guard try replace(queue: name, by: entry) else { return }
      queues.free.remove(name)
      try leave(queue: name, entry, to: heir.machine)
    }
  }

  /// Whether a queue was given to a machine whose name comes after that of this machine.
  private func follows(_ entry: QueueList.Entry, _ machine: String) -> Bool {
    entry.heir == machine && place.machine < machine
  }

  /// Lets the programs of this machine use an own queue as programs of the home.
  ///
  /// Lent messages are with the former home again. Messages in transit to the former home must end
  /// or come back first: until then the call is refused.
  private func settle(queue name: String) throws(WormholeError) {
    guard !queues.settled.contains(name) else { return }
    try carrier.keep(name)
    if residents[.queue(name)] != nil {
      if let one = queues.worked.removeValue(forKey: name) {
        try one.queue.giveBack()
        for ended in try one.queue.look().ended { try one.queue.forget(ended.file) }
        one.queue.stop()
      }
      try residents.release(.queue(name))
    }
    queues.conflicts[name] = nil
    queues.settled.insert(name)
  }
}
