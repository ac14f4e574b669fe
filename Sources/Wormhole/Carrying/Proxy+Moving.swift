internal import FoundationEssentials
internal import WormholeContainerStorage
package import WormholePropertyLists
internal import WormholeSyscalls

/// A proxy whose home has moved to another machine.
extension Proxy {
  /// Takes a message back that the other machine has not delivered: it waits again, in its place.
  ///
  /// A message that its sender wants to cancel is cancelled. Repeating the call changes nothing.
  package func takeBack(_ name: MessageName) throws(WormholeError) {
    guard try !isCancelled(name) else { return try cancel(name) }
    try naming("put back message", name.id, at: home) { () throws(Errno) in
      _ = try home.move(
        ClaimedName(name, attempt: 1).text, from: .claimed, .inbox, as: name.text)
    }
    // A sender that has found the claim after its request counts on the request.
    if try isCancelled(name) { try cancel(name) }
  }

  /// What a carrier has written into a message that waits; nil also if the file cannot be read.
  package func origin(ofWaiting name: MessageName) throws(WormholeError) -> PropertyListValue? {
    guard case .sound(let bytes, _) = try home.read(name.text, in: .inbox, "read message") else {
      return nil
    }
    return try? CarriedMessage(name, bytes, carrier.container.options.limits).origin
  }

  /// Removes a message that waits, durably, and its file: its sender's machine sends both again.
  ///
  /// If the message waited again after a power cut, it would be returned a second time, while it is
  /// in transit to the new home.
  package func remove(waiting name: MessageName) throws(WormholeError) {
    try naming("put back message", name.id, at: home) { () throws(Errno) in
      _ = try home.remove(name.text, from: .inbox)
      try home.makeDurable(.inbox)
    }
    home.dropFile(of: name)
  }

  /// Lets the directory stand for a member of another machine than before.
  ///
  /// - Parameter term: how often the home of a queue has moved.
  package func moved(to machine: String, term: Int = 0) throws(WormholeError) -> Proxy {
    disappear()
    let now = carrier.container.storage.options.environment.sinceEpoch()
    var elsewhere = Elsewhere(machine: machine, since: Date(sinceEpoch: now))
    if case .queue(let name) = resident {
      elsewhere.term = term
      let known = try carrier.home(ofQueue: name)
      elsewhere.before = (known?.machine == machine ? known?.before : known?.followed) ?? []
    }
    try carrier.hold(home) { () throws(WormholeError) in try home.write(elsewhere) }
    return Proxy(carrier, home, resident, machine)
  }

  /// Notes that the home of a queue has moved, and is the same machine again.
  package func note(term: Int) throws(WormholeError) {
    guard var elsewhere = try carrier.elsewhere(of: home), elsewhere.machine == machine
    else { return }
    elsewhere.term = term
    let noted = elsewhere
    try carrier.hold(home) { () throws(WormholeError) in try home.write(noted) }
  }

  /// Gives the name back to programs of this machine, which receive the waiting messages.
  ///
  /// While messages are in transit, this is refused with
  /// ``WormholeError/Code-swift.struct/conflict``: a program would take them for its own.
  ///
  /// - Parameter isHome: whether this machine is the member's home now, and not only free to be.
  package func release(isHome: Bool = false) throws(WormholeError) {
    disappear()
    try carrier.hold(home) { () throws(WormholeError) in
      let count = try claimed().count
      guard count == 0 else {
        throw WormholeError(
          .conflict, Carrier.standing, name, because: "\(count) messages to it are in transit")
      }
      if isHome { try adoptProfile() }
      try home.removeElsewhere()
    }
  }

  /// Makes the profile that of a member of this machine.
  ///
  /// Otherwise the name would have no home if the servers lost its record before a program joins.
  private func adoptProfile() throws(WormholeError) {
    let found = try naming("read the profile of member", name, at: home, home.readProfile())
    guard var profile = found.profile, profile.isCarried else { return }
    profile.isCarried = false
    try home.write(profile)
  }
}

extension Carrier {
  /// Calls a function while no program can join under the name of a member of this machine.
  ///
  /// - Throws: ``WormholeError/Code-swift.struct/nameTaken`` while a program has the name, and
  ///   ``WormholeError/Code-swift.struct/conflict`` while messages are claimed and not settled.
  package func holding<Result>(
    _ member: String, to operation: String, _ body: () throws -> Result
  ) throws -> Result {
    let home = try container.storage.member(member)
    let (presence, hasClaims) = try naming(operation, member, at: home) { () throws(Errno) in
      let presence = try home.takePresence()
      return (presence, try home.contains(.claimed) { ClaimedName(String(cString: $0)) != nil })
    }
    guard let presence else {
      throw WormholeError(
        .nameTaken, operation, member, because: "a process of this machine has the name",
        hint: "end the process first")
    }
    defer { presence.release() }
    guard !hasClaims else {
      throw WormholeError(
        .conflict, operation, member,
        because: "it has claimed messages that no program has settled",
        hint: "let a program join under the name once more, and handle the messages")
    }
    return try body()
  }
}
