internal import WormholeRelay
internal import WormholeSyscalls

/// What the servers do not permit this machine.
extension Bridge {
  /// Ends the bridge if the servers refuse a subscription that it needs.
  ///
  /// The refusal of a reply is only noted: another machine has named its subject.
  func take(refusal failure: RelayFailure) {
    note(trouble: "the servers refuse a right: \(failure.reason)")
    guard case .notPermitted(let subject) = failure.kind, let rights = try? rights() else { return }
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
  func checkRights(_ link: Link, _ now: Instant) {
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
