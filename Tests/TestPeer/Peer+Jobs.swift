import TestSupport

extension Peer {
  /// Does a job, in the order of the cases.
  static func perform(_ job: PeerJob) throws {
    switch job {
    case .touch(let directory, let name): try touch(directory, name)
    case .replace(let directory, let name, let text): try replace(directory, name, text)
    case .list(let directory): try list(directory)
    case .descriptors: try descriptors()
    case .respawn(let job): try respawn(job)
    case .filterBare(let directory): try filterBare(directory)
    case .bystander(let directory, let name): try bystander(directory, name)
    case .hold(let directory, let name): try hold(directory, name)
    case .share(let directory, let name): try share(directory, name)
    case .flock(let directory, let name): try flock(directory, name)
    case .linger: try linger()
    case .openBeneath(let directory, let path): try openBeneath(directory, path)
    case .open(let container): try open(container)
    case .add(let container, let channel, let times, let durability):
      try add(container, channel, times: times, durability: durability)
    case .read(let container, let channel): try readSlot(container, channel)
    case .stopInside(let container, let channel): try stopInside(container, channel)
    case .move(let container, let from, let to): try move(container, from: from, to: to)
    case .holdLock(let container, let name): try holdLock(container, name)
    case .holdNamedLock(let container, let name): try holdNamedLock(container, name)
    case .addBetween(let container, let channel, let log, let start, let end):
      try addBetween(container, channel, log: log, start: start, end: end)
    case .forkInside(let container, let channel): try forkInside(container, channel)
    case .spawnInside(let container, let channel): try spawnInside(container, channel)
    case .acknowledge(let container, let channel, let durability, let times):
      try acknowledge(container, channel, durability: durability, times: times)
    case .addSaved(let container, let channel, let times):
      try addSaved(container, channel, times: times)
    case .watch(let container, let channel, let last): try watch(container, channel, until: last)
    case .watchMany(let container, let count): try watchMany(container, count: count)
    case .names(let container, let last): try names(container, until: last)
    case .probe(let container, let channel): try probe(container, channel)
    case .mark(let container, let channel, let log, let end):
      try mark(container, channel, log: log, end: end)
    case .remove(let container, let channel, let times):
      try remove(container, channel, times: times)
    case .count(let container, let channel, let times): try count(container, channel, times: times)
    case .countAloud(let container, let channel): try countAloud(container, channel)
    case .put(let container, let channel, let numbers): try put(container, channel, numbers)
    case .putInGroup(let group, let channel, let number): try putInGroup(group, channel, number)
    case .stopUpdating(let container, let channel): try stopUpdating(container, channel)
    case .post(let container, let notice): try post(container, notice)
    case .set(let container, let suite, let prefix, let count):
      try set(container, suite, prefix: prefix, count: count)
    case .furnish(let group): try furnish(group)
    case .tryEverything(let group): try tryEverything(group)
    case .join(let container, let name): try join(container, name)
    case .carry(let here, let there, let members, let channels):
      try carry(here, there, members, channels)
    case .bridge(let container, let group, let address, let tokenFile):
      try bridge(container, group, address, tokenFile)
    case .be(let container, let name, let info): try be(container, name, info: info)
    case .beForked(let container, let name): try beForked(container, name)
    case .beSpawned(let container, let name): try beSpawned(container, name)
    case .leaveForked(let container, let name, let file):
      try leaveForked(container, name, once: file)
    case .forkWhileJoining(let container, let name, let file):
      try forkWhileJoining(container, name, leaveOnce: file)
    case .joinInTurns(let container, let name, let processes, let rounds):
      try joinInTurns(container, name, processes: processes, rounds: rounds)
    case .joinMany(let container, let count): try joinMany(container, count: count)
    case .ask(let container, let name): try ask(container, name)
    case .watchMember(let container, let name): try watchMember(container, name)
    case .beginAndStop(let container, let rounds): try beginAndStop(container, rounds: rounds)
    case .guardForks(let directory, let name): try guardForks(directory, name)
    case .guardMany(let directory, let name): try guardMany(directory, name)
    case .nameCopies: try nameCopies()
    case .inherit(let directory, let way): try inherit(directory, by: way)
    case .catchSignals: try catchSignals()
    case .catchInCopies: try catchInCopies()
    case .refuseSignals: try refuseSignals()
    case .handleSignal(let isChained): try handleSignal(isChained: isChained)
    case .forkBusy(let container, let copies): try forkBusy(container, copies: copies)
    case .send(
      let container, let name, let peer, let numbers, let batch, let durability, let waits,
      let isNamed):
      try send(
        container, from: name, to: peer, numbers, batch: batch, durability: durability,
        waits: waits, isNamed: isNamed)
    case .receive(let container, let name, let log, let last, let poison):
      try receive(container, name, log: log, until: last, poison: poison)
    case .work(
      let container, let queue, let log, let concurrency, let deadline, let killsAt, let stopsAt,
      let times, let rest):
      try work(
        container, queue, log: log, concurrency, .milliseconds(deadline), killsAt: killsAt,
        stopsAt: stopsAt, times: times, rest: .milliseconds(rest))
    case .refuse(let container, let name, let attempts):
      try refuse(container, name, attempts: attempts)
    case .cancel(let container, let from, let to): try cancel(container, from: from, to: to)
    case .outcomes(let container, let name, let wanted):
      try outcomes(container, name, count: wanted)
    case .drain(let container, let name, let wanted): try drain(container, name, count: wanted)
    case .insist(let container, let from, let to, let other, let file):
      try insist(container, from: from, to: to, other: other, until: file)
    case .sendForked(let container): try sendForked(container)
    case .sendFile(let container, let file, let moves, let durability):
      try sendFile(container, file, moves: moves, durability: durability)
    case .receiveFile(let container, let path, let takes):
      try receiveFile(container, to: path, takes: takes)
    case .fileMemory(let container, let file, let path): try fileMemory(container, file, to: path)
    case .respond(let container, let name, let manner): try respond(container, name, manner)
    case .respondOnce(let container, let name): try respondOnce(container, name)
    case .hear(let container, let name): try hear(container, name)
    case .hearOften(let container, let name, let times):
      try hearOften(container, name, times: times)
    case .request(let container, let peer, let numbers, let name, let milliseconds):
      try request(container, of: peer, numbers, as: name, milliseconds: milliseconds)
    case .sendAs(let container, let sender, let peer, let number):
      try sendAs(container, from: sender, to: peer, number)
    case .wake(let container, let name, let milliseconds, let stays):
      try wake(container, name, milliseconds: milliseconds, stays: stays)
    case .awaken(let path, let name, let manner): try awaken(path, name, manner)
    case .coordinate(let kind, let path, let what, let milliseconds):
      try coordinate(
        kind, path, what, takeOverAfter: milliseconds.map { .milliseconds($0) })
    case .moveInside(let path, let new): try moveInside(path, to: new)
    case .coordinateAdd(let path, let times): try coordinateAdd(path, times: times)
    case .present(let path, let manner): try present(path, manner)
    case .presentAmong(let hung, let path): try present(path, among: hung)
    case .presentAndAdd(let path, let times): try presentAndAdd(path, times: times)
    case .rename(let directory, let name, let new): try rename(directory, name, to: new)
    case .plant(let directory, let name, let bytes): try plant(directory, name, bytes)
    case .plantDirectory(let directory, let name): try plantDirectory(directory, name)
    case .plantLink(let directory, let name, let target): try plantLink(directory, name, target)
    case .callLimited(let container, let limit, let isReady):
      try callLimited(container, limit, isReady: isReady)
    case .awaitLimited(let container, let descriptors, let isReady):
      try awaitLimited(container, descriptors: descriptors, isReady: isReady)
    case .listenOnQueue(let container): try listenOnQueue(container)
    case .callOnQueue: try callOnQueue()
    case .openAgain(let container, let times): try openAgain(container, times: times)
    case .sendOddKinds(let container, let name, let asks):
      try sendOddKinds(container, to: name, asks: asks)
    case .endAfterRefusedThread: try endAfterRefusedThread()
    case .requestWhileBusy(let container, let name):
      try requestWhileBusy(container, of: name)
    case .as(let user, let group, let job): try become(user, group, for: job)
    case .sandboxed(let error, let command): try sandbox(error, command)
    case .diagnose(let container): try diagnose(container)
    case .linked(let name): try linked(name)
    case .print(let line, let times, let killsItself):
      try printLine(line, times: times, killsItself: killsItself)
    case .encodeOften(let keys, let times): try encodeOften(keys: keys, times: times)
    case .testGroups(let group): try testGroups(group)
    }
  }
}
