internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// The rights of this machine that the servers do not grant.
extension Bridge {
  /// Ends the bridge if the servers refuse a subscription that it needs.
  ///
  /// The refusal of a reply is only noted: another machine has named its subject.
  func take(refusal failure: RelayFailure) {
    guard case .notPermitted(let subject) = failure.kind else {
      return note(trouble: failure.reason)
    }
    note(trouble: "the servers refuse a right: \(failure.reason)")
    guard let rights = try? rights() else { return }
    let own = [Subjects.words(to: place.machine), link?.subjects?.heartbeats]
    let isInbox = subject.begins(with: "_INBOX.\(place.machine).")
    guard failure.reason.lowercased().contains("subscription"), own.contains(subject) || isInbox
    else { return }
    let right = rights.rights.first { right in
      right.action == .subscribe && (right.subject == subject || isInbox && right.isInbox)
    }
    if let right { end(without: right, failure.reason) }
  }

  /// Tries the rights once, and ends the bridge if one is missing: without a check, a leaf would
  /// hide the refusal, and messages would wait for ever.
  func checkRights(_ link: ServerLink, _ now: Instant) {
    guard !hasCheckedRights, let subjects = link.subjects, let rights = try? rights() else {
      return
    }
    let check =
      link.rights ?? RightsCheck(link.jetStream, subjects, place.machine, rights)
    link.rights = check
    check.proceed(now)
    guard check.isDone else { return }
    hasCheckedRights = true
    if let (right, reason) = check.missing { end(without: right, reason) }
  }

  private func rights() throws -> MachineRights {
    try MachineRights(
      machine: place.machine, group: place.group,
      domain: link?.connection.server.domain ?? settings.domain ?? "hub")
  }

  // MARK: Questions of the doctor

  /// The keys of the question whether a bridge runs, and of its reply.
  enum HereKey {
    static let (generation, wantsReply) = ("generation", "asks")
    static let (isHeard, hasReply) = ("heard", "replied")
  }
  private static let hereTime = Duration.seconds(2)

  /// States that the bridge runs, and whether heartbeats of the asking machine arrive.
  ///
  /// On request, the bridge asks the asking machine's bridge in turn, and states whether a reply
  /// has arrived. A leaf hides whether replies pass the hub.
  func take(here message: RelayMessage, from machine: String) {
    var reply: [String: PropertyListValue] = [
      HereKey.generation: .integer(Int64(place.generation)),
      HereKey.isHeard: .boolean(beats[machine] != nil),
    ]
    let question = try? BinaryPropertyList.decode(message.payload)
    guard question?[HereKey.wantsReply]?.boolValue == true, let link else {
      return answer(message, .dictionary(reply))
    }
    link.connection.request(
      Subjects.word(.here, to: machine, from: place.machine), [], within: Self.hereTime
    ) { [weak self] result in
      reply[HereKey.hasReply] = .boolean((try? result.get()) != nil)
      self?.answer(message, .dictionary(reply))
    }
  }

  private func end(without right: MachineRights.Right, _ reason: String) {
    end = BridgeEnd(
      .noRights,
      "machine \(place.machine) may not \(right.purpose): it lacks the right to "
        + "\(right.action.rawValue) '\(right.subject)' (\(reason))",
      hint: "give the machine the rights that 'wormhole bridge rights' prints, on all servers")
  }
}

extension MachineRights.Right {
  fileprivate var isInbox: Bool { subject.begins(with: "_INBOX.") }
}
