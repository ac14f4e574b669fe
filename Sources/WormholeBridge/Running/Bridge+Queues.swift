internal import FoundationEssentials
package import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Queues with workers on several machines.
///
/// Each queue of the own machine has a file; `wormhole bridge queue` adds files. The home states
/// the queues in heartbeats. A machine with workers states how many messages the workers handle at
/// the same time, and the messages in hand.
extension Bridge {
  /// Lets other machines work on a queue of this machine; false if the queue was named before.
  package static func addQueue(
    _ name: String, of container: SharedContainer
  ) throws(WormholeError) -> Bool {
    let operation = "carry queue"
    let list = try QueueList(of: container.storage)
    return try list.changing(name, within: .seconds(10)) { () throws(WormholeError) in
      if var entry = try list.entry(name) {
        guard let heir = entry.heir else {
          // A move that has not begun is taken back.
          if entry.move != nil {
            entry.move = nil
            try list.replace(name, by: entry)
          }
          return false
        }
        throw WormholeError(
          .conflict, operation, name, because: "its home moves to machine \(heir)")
      }
      let home = try container.storage.existingMember(name, in: .queues)
      try home?.checkHome(operation, .conflict, hint: "name the queue on that machine")
      var entry = QueueList.Entry()
      if let term = try list.keptTerm(of: name) { entry.term = term.addingClamped(1) }
      try list.replace(name, by: entry)
      return true
    }
  }

  /// Looks at the queues, with or without a connection.
  func carryQueues(_ now: Instant) {
    guard queues.nextLook <= now else { return }
    queues.nextLook = now + .seconds(1)
    attempt { () throws(WormholeError) in
      let list = try QueueList(of: container.storage).entries()
      var entries = list.entries
      for name in list.errors.keys { entries[name] = queues.entries[name] }
      for error in queues.unread.replace(by: list.errors) { log(.warning, "\(error)") }
      if entries != queues.entries {
        for (name, entry) in entries where queues.entries[name] != entry {
          (queues.conflicts[name], queues.draining[name]) = (nil, nil)
        }
        queues.entries = entries
        queues.settled.formIntersection(queues.own)
        link?.nextBeat = .longAgo
      }
      findWorked(now)
    }
    moveQueues(now)
    for name in queues.worked.keys { look(atQueue: name, now) }
    queues.late = queues.late.filter { beats[$0.key.machine] != nil }
    for (lender, queue) in queues.lenders where beats[lender.machine] == nil {
      // The machine's messages go back at the deadline.
      queue.setRoom(0)
      queue.renew([])
      guard queue.count == 0 else { continue }
      queue.stop()
      queues.lenders[lender] = nil
    }
  }

  /// Finds the proxies of queues.
  ///
  /// A queue with a directory that cannot be used at present holds up no other queue.
  private func findWorked(_ now: Instant) {
    var heard: [String: Instant] = [:]
    for (name, one) in queues.worked {
      let present = residents[.queue(name)]
      guard present !== one.queue.proxy else { continue }
      if present?.machine == one.machine {
        // The proxy was opened again: the queue's directory may be another one by now.
        heard[name] = one.heard
      } else {
        let isBack = attempt(queue: name) { () throws(WormholeError) in
          // The former home has the messages again.
          try one.queue.giveBack()
          queues.conflicts[name] = nil
        }
        guard isBack else { continue }
      }
      one.queue.stop()
      queues.worked[name] = nil
    }
    for proxy in residents.all {
      guard case .queue(let name) = proxy.resident, queues.worked[name] == nil,
        let machine = proxy.machine
      else { continue }
      attempt(queue: name) { () throws(WormholeError) in
        queues.worked[name] = QueueTraffic.BorrowedQueue(
          machine: machine, queue: try WorkedQueue(proxy), heard: heard[name] ?? now)
        queues.conflicts[name] = nil
        pair(machine)?.isDirty = true
      }
    }
  }

  /// Looks at the lent messages of a queue.
  func look(atQueue name: String, _ now: Instant) {
    guard let one = queues.worked[name] else { return }
    attempt { () throws(WormholeError) in
      var look = try one.queue.look()
      let silence = now - one.heard
      if look.room == 0 || silence > QueueTraffic.longestSilence, !look.held.isEmpty {
        try one.queue.giveBack()
        // By now the home has ended these claims.
        if silence > LentQueue.deadline { try one.queue.revoke { _ in true } }
        look = try one.queue.look()
      }
      queues.worked[name]?.look = look
      if look.room != one.look.room { link?.nextBeat = .longAgo }
      if !look.ended.isEmpty { noteQueues(of: one.machine) }
    }
  }

  /// Entries may wait for a number of the flow to a machine.
  func noteQueues(of machine: String) {
    queues.note(machine)
    pair(machine)?.due = .longAgo
  }

  // MARK: Heartbeats

  /// The statement of the next heartbeat about the machine's workers.
  var work: [String: WorkerStatement] {
    queues.worked.filter { $0.value.look.room > 0 }.mapValues { one in
      let held = one.look.held.compactMap { MessageOrigin($0)?.job?.id }
      return WorkerStatement(
        home: one.machine, room: min(one.look.room, QueueTraffic.largestRoom),
        held: Set(held.prefix(QueueTraffic.largestRoom)))
    }
  }

  /// The statement of the next heartbeat about the queues of this machine.
  var queueTerms: [String: Int] {
    queues.entries.filter { $0.value.heir == nil }.mapValues(\.term)
  }

  func take(queuesOf beat: Heartbeat, _ machine: String, isNew: Bool, _ now: Instant) {
    // This machine may be the home of a queue whose file it cannot read.
    for (name, heir) in beat.heirs where !queues.unread.contains(name) {
      if heir.machine == place.machine {
        inherit(queue: name, heir, from: machine)
      } else {
        follow(queue: name, heir, from: machine)
      }
    }
    for (name, term) in beat.queues where !queues.unread.contains(name) {
      adopt(name, of: machine, term, isNew: isNew, now)
    }
    for (name, home) in queues.homes where home == machine && beat.queues[name] == nil {
      queues.homes[name] = nil
    }
    revoke(beat.late, of: machine, now)
    // Of a queue that the machine does not state, its workers have nothing.
    queues.late = queues.late.filter { $0.key.machine != machine }
    let here = beat.work.filter { $0.value.home == place.machine }
      .filter { !queues.unstated.contains($0.key) }
    for (name, work) in here where queues.entries[name] != nil { lend(name, to: machine, work) }
    for (lender, queue) in queues.lenders where lender.machine == machine {
      guard !queues.own.contains(lender.queue) || here[lender.queue] == nil else { continue }
      queue.setRoom(0)
      queue.renew([])
    }
  }

  /// Lends messages to a machine whose workers have room, and renews the claims of what they have.
  private func lend(_ name: String, to machine: String, _ work: WorkerStatement) {
    let lender = QueueTraffic.Lender(queue: name, machine: machine)
    if queues.lenders[lender] == nil, queues.settled.contains(name) {
      attempt(queue: name) { () throws(WormholeError) in
        queues.lenders[lender] = try LentQueue(name, container) { [news] in
          news.note(lentTo: machine)
        }
        queues.conflicts[name] = nil
      }
    }
    guard let queue = queues.lenders[lender] else {
      queues.late[lender] = work.held
      return
    }
    queue.setRoom(queues.draining[name] == nil ? work.room : 0)
    queues.late[lender] = queue.renew(work.held)
  }

  /// Takes messages away from this machine's workers after the home has ended the claims.
  private func revoke(_ late: Set<String>, of machine: String, _ now: Instant) {
    guard !late.isEmpty else { return }
    for (name, one) in queues.worked where one.machine == machine {
      attempt { () throws(WormholeError) in
        try one.queue.revoke { origin in
          MessageOrigin(origin)?.job.map { late.contains($0.id) } ?? false
        }
        look(atQueue: name, now)
      }
    }
  }

  /// Runs the body; its error becomes the conflict of a queue.
  ///
  /// - Returns: false after an error.
  @discardableResult
  func attempt(queue name: String, _ body: () throws(WormholeError) -> Void) -> Bool {
    do throws(WormholeError) {
      try body()
      return true
    } catch {
      if queues.conflicts[name] != error.reason {
        // Workers end with their messages soon.
        log(error.code == .nameTaken ? .notice : .warning, "\(error)")
      }
      queues.conflicts[name] = error.reason
      return false
    }
  }

  /// Sends to the home of a queue from now on, and works for the home.
  private func adopt(
    _ name: String, of machine: String, _ term: Int, isNew: Bool, _ now: Instant
  ) {
    guard !queues.own.contains(name) else { return }
    let entry = queues.entries[name]
    if let entry, !entry.ends(withHome: machine, term) { return }
    queues.homes[name] = machine
    attempt(queue: name) { () throws(WormholeError) in
      let known = residents[.queue(name)]?.machine
      let proxy = try residents.proxy(ofQueue: name, on: machine, term: term) { present in
        // Two machines that both state the queue are a conflict.
        beats[present]?.queues[name] == nil
      }
      if known != proxy.machine { findWorked(now) }
      if entry != nil {
        guard try replace(queue: name, by: nil) else { return }
        queues.free.remove(name)
        queues.late = queues.late.filter { $0.key.queue != name }
      }
      // Without its proxy, the queue could not be opened, for a reason that is noted already.
      if queues.worked[name]?.queue.proxy === proxy { queues.conflicts[name] = nil }
      guard queues.worked[name]?.machine == machine else { return }
      queues.worked[name]?.heard = now
      // The home's bridge has started again, and has given the lent messages to further workers.
      if isNew, queues.worked[name]?.look.held.isEmpty == false {
        try queues.worked[name]?.queue.giveBack()
        look(atQueue: name, now)
      }
    }
  }

  /// The conflict of a queue with several homes.
  private func rivalry(about name: String) -> String? {
    var homes = beats.filter { $0.value.queues[name] != nil }.keys.sorted()
    if queues.own.contains(name) {
      return homes.first.map { "its home is machine \($0), too" }
    }
    guard homes.count > 1 else { return nil }
    let last = homes.removeLast()
    return
      "the queue has more than one home: the machines \(homes.joined(separator: ", ")) and \(last)"
  }

  var queueStatus: [String: PropertyListValue] {
    var list: [String: PropertyListValue] = [:]
    let names = Set(queues.entries.keys).union(queues.homes.keys).union(queues.worked.keys)
    for name in names.union(queues.conflicts.keys).union(queues.unread.reasons.keys) {
      var one: [String: PropertyListValue] = [:]
      if queues.own.contains(name) {
        one["home"] = .string(place.machine)
        let lenders = queues.lenders.filter { $0.key.queue == name }
        one["lent"] = .integer(Int64(lenders.values.reduce(0) { $0 + $1.count }))
        one["refused"] = .integer(Int64(queues.refused[name] ?? 0))
      } else {
        one["home"] = (queues.worked[name]?.machine ?? queues.homes[name]).map { .string($0) }
        one["lent"] = .integer(Int64(queues.worked[name]?.look.held.count ?? 0))
      }
      let unstated = queues.unstated.contains(name) ? HeartbeatContent.withoutQueue : nil
      let trouble = queues.unread.reasons[name] ?? unstated ?? rivalry(about: name)
      one["trouble"] = (trouble ?? queues.conflicts[name]).map { .string($0) }
      list[name] = .dictionary(one)
    }
    return list
  }
}
