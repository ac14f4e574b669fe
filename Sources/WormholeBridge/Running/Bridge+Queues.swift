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
    let home = try container.storage.existingMember(name, in: .queues)
    try home?.checkHome(operation, .conflict, hint: "name the queue on that machine")
    let file = try BridgeFolder.file(of: name)
    let folder = try BridgeFolder([QueueTraffic.folderName], of: container.storage)
    guard try !folder.contains(file) else { return false }
    try folder.replace(file, by: [:])
    return true
  }

  /// Looks at the queues, with or without a connection.
  func carryQueues(_ now: Instant) {
    guard queues.nextLook <= now else { return }
    queues.nextLook = now + .seconds(1)
    do throws(WormholeError) {
      let named = try BridgeFolder([QueueTraffic.folderName], of: container.storage)
      let own = Set(try named.names().compactMap(BridgeFolder.name(of:)))
      if own != queues.own {
        queues.own = own
        link?.nextBeat = .longAgo
      }
      try findWorked(now)
    } catch {
      log(.warning, "\(error)")
    }
    for name in queues.worked.keys { look(atQueue: name, now) }
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
  private func findWorked(_ now: Instant) throws(WormholeError) {
    for (name, one) in queues.worked where residents[.queue(name)]?.machine != one.machine {
      one.queue.stop()
      queues.worked[name] = nil
    }
    for proxy in residents.all {
      guard case .queue(let name) = proxy.resident, queues.worked[name] == nil,
        let machine = proxy.machine
      else { continue }
      queues.worked[name] = QueueTraffic.Worked(
        machine: machine, queue: try WorkedQueue(proxy), heard: now)
      queues.conflicts[name] = nil
      pair(machine)?.isDirty = true
    }
  }

  /// Looks at the lent messages of a queue.
  func look(atQueue name: String, _ now: Instant) {
    guard let one = queues.worked[name] else { return }
    do throws(WormholeError) {
      var look = try one.queue.look()
      let isCutOff = now - one.heard > QueueTraffic.longestSilence
      if look.room == 0 || isCutOff, !look.held.isEmpty {
        try one.queue.giveBack()
        look = try one.queue.look()
      }
      queues.worked[name]?.look = look
      if look.room != one.look.room { link?.nextBeat = .longAgo }
      if !look.ended.isEmpty { noteQueues(of: one.machine) }
    } catch {
      log(.warning, "\(error)")
    }
  }

  /// Entries may wait for a number of the flow to a machine.
  func noteQueues(of machine: String) {
    queues.note(machine)
    pair(machine)?.due = .longAgo
  }

  // MARK: Heartbeats

  /// The statement of the next heartbeat about the machine's workers.
  var work: [String: QueueTraffic.Work] {
    queues.worked.filter { $0.value.look.room > 0 }.mapValues { one in
      let held = one.look.held.compactMap { MessageOrigin($0)?.job?.id }
      return QueueTraffic.Work(
        room: min(one.look.room, QueueTraffic.largestRoom),
        held: Set(held.prefix(QueueTraffic.largestRoom)))
    }
  }

  func take(queuesOf beat: Heartbeat, _ machine: String, isNew: Bool, _ now: Instant) {
    for name in beat.queues { adopt(name, of: machine, isNew: isNew, now) }
    for (name, home) in queues.homes where home == machine && !beat.queues.contains(name) {
      queues.homes[name] = nil
    }
    for name in beat.work.keys where queues.own.contains(name) {
      let lender = QueueTraffic.Lender(queue: name, machine: machine)
      guard queues.lenders[lender] == nil else { continue }
      do throws(WormholeError) {
        queues.lenders[lender] = try LentQueue(name, container) { [news] in
          news.note(lentTo: machine)
        }
        queues.conflicts[name] = nil
      } catch {
        if queues.conflicts[name] != error.reason { log(.warning, "\(error)") }
        queues.conflicts[name] = error.reason
      }
    }
    for (lender, queue) in queues.lenders where lender.machine == machine {
      let work = queues.own.contains(lender.queue) ? beat.work[lender.queue] : nil
      queue.setRoom(work?.room ?? 0)
      queue.renew(work?.held ?? [])
    }
  }

  /// Sends to the home of a queue from now on, and works for the home.
  private func adopt(_ name: String, of machine: String, isNew: Bool, _ now: Instant) {
    guard !queues.own.contains(name) else {
      queues.conflicts[name] = "its home is machine \(machine), too"
      return
    }
    guard evicted[machine] == nil else { return }
    queues.homes[name] = machine
    do throws(WormholeError) {
      if residents[.queue(name)]?.machine != machine {
        _ = try residents.proxy(of: .queue(name), on: machine)
        try findWorked(now)
      }
      queues.conflicts[name] = nil
      guard queues.worked[name]?.machine == machine else { return }
      queues.worked[name]?.heard = now
      // The home's bridge has started again, and has given the lent messages to further workers.
      if isNew, queues.worked[name]?.look.held.isEmpty == false {
        try queues.worked[name]?.queue.giveBack()
        look(atQueue: name, now)
      }
    } catch {
      if queues.conflicts[name] != error.reason { log(.warning, "\(error)") }
      queues.conflicts[name] = error.reason
    }
  }

  var queueStatus: [String: PropertyListValue] {
    var list: [String: PropertyListValue] = [:]
    let names = queues.own.union(queues.homes.keys).union(queues.worked.keys)
    for name in names.union(queues.conflicts.keys) {
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
      one["trouble"] = queues.conflicts[name].map { .string($0) }
      list[name] = .dictionary(one)
    }
    return list
  }
}
