package import SharedContainer
internal import Syscalls

/// The files that come with messages.
extension Mailbox {
  /// Compares a message's file with what was sent; throws what makes the message be given up, or
  /// tried again.
  ///
  /// One that is missing when the message comes again was taken by an earlier attempt, and its
  /// message is handed over all the same.
  func verifyFile(
    of claimed: ClaimedName, _ header: MessageFile.Header
  ) throws(WormholeError) {
    guard let file = header.file else { return }
    let operation = "read message"
    guard UserPath.isName(file.name), file.size >= 0 else {
      throw WormholeError(
        .damaged, operation, claimed.name.id, because: "what it says of its file cannot be")
    }
    let from: String? =
      if case .member(let name) = claimed.name.sender { name } else { nil }
    let arriving = hole.options.mail.arriving
    do throws(MemberDirectory.AttachmentProblem) {
      try home.verifyAttachment(claimed.name.fileName, size: file.size, checksum: file.checksum) {
        arriving?(from, Wormhole.FileProgress(name: file.name, done: $0, total: file.size))
        return !isClosed
      }
    } catch {
      if error == .missing, claimed.attempt > 1 || claimed.name.isRetried { return }
      throw WormholeError(error, operation, claimed.name.id, "the file that came with it")
    }
  }

  /// Removes the file of a message that has ended.
  func dropFile(of name: MessageName, _ header: MessageFile.Header) {
    guard header.file != nil else { return }
    do throws(Errno) {
      _ = try home.remove(name.fileName, from: .files)
    } catch {
      log(
        .warning, "cannot remove the file of message '\(name.id)': \(error)", name, because: error)
    }
  }
}

extension Wormhole {
  /// Removes what the dead have left in a member's `files/`, while nobody else can be the member.
  func sweepFiles(of home: MemberDirectory) {
    sweepIdentifiers(of: home)
    do throws(Errno) {
      let swept = try home.sweepFiles { MessageName.messages(ofFile: $0) }
      guard !swept.isEmpty else { return }
      log(
        .info, "removed \(swept.count) files to '\(home.name)' whose messages are no more",
        about: LogSubject(member: home.name))
    } catch {
      log(
        .notice, "could not sweep the files of '\(home.name)': \(error)",
        about: LogSubject(member: home.name), because: error)
    }
  }

  /// Does the same for all members that are not joined.
  ///
  /// One that is joined has done so when it joined, and claims messages now.
  ///
  /// - Parameter isLooking: whether it only looks, and removes nothing.
  /// - Returns: what was removed, or would be, as findings of an inspection.
  package func sweepFiles(isLooking: Bool) -> [SharedContainer.Finding] {
    var swept: [SharedContainer.Finding] = []
    for name in (try? container.names(in: .members)) ?? [] {
      // Of what is no member's directory those tell who look at members.
      guard let home = try? container.existingMember(name) else { continue }
      let path = "\(home.path)/files"
      func sweep() throws(Errno) {
        // Who cannot be asked is not swept.
        guard try !home.isPresent() else { return }
        swept += try home.sweepFiles(isLooking: isLooking) {
          MessageName.messages(ofFile: $0)
        }.map {
          SharedContainer.Finding(
            .problem, "\(path)/\($0)", "a file whose message is no more",
            advice: "it is removed when '\(name)' joins", isRepairable: true)
        }
      }
      guard isLooking else {
        container.repair(path, sweep)
        continue
      }
      if let obstacle = SharedContainer.Finding.obstacle(at: path, sweep) { swept.append(obstacle) }
    }
    return swept
  }
}

extension WormholeError {
  /// What is wrong with the file of a message.
  init(
    _ problem: MemberDirectory.AttachmentProblem, _ operation: String, _ subject: String,
    _ file: String
  ) {
    switch problem {
    case .system(let error): self.init(error, operation, subject)
    case .missing: self.init(.damaged, operation, subject, because: "\(file) is missing")
    case .refused(let reason):
      self.init(.refused, operation, subject, because: "\(file) is refused: \(reason)")
    case .damaged(let reason):
      self.init(.damaged, operation, subject, because: "\(file) is damaged: \(reason)")
    case .cancelled:
      self.init(.cancelled, operation, subject, because: "the member leaves")
    case .notDurable(let error):
      self.init(
        .notDurable, operation, subject,
        because: "it was done, but the directory could not be synced: \(error)", errno: error)
    }
  }
}
