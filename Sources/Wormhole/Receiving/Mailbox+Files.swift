package import WormholeContainerStorage
internal import WormholeSyscalls

/// The files of messages.
extension Mailbox {
  /// Compares a message's file with the size and checksum from the sender; throws an error after
  /// which the message is dead-lettered or retried.
  ///
  /// A file that is missing on redelivery was taken by an earlier attempt, and its message is
  /// delivered nevertheless.
  func verifyFile(
    of claimed: ClaimedName, _ header: MessageFile.Header
  ) throws(WormholeError) {
    try container.verifyFile(of: claimed, header, in: home) { self.isClosed }
  }
}

extension SharedContainer {
  /// Compares a message's file with the size and checksum from the sender.
  func verifyFile(
    of claimed: ClaimedName, _ header: MessageFile.Header, in home: MemberDirectory,
    isOver: @escaping () -> Bool
  ) throws(WormholeError) {
    guard let file = header.file else { return }
    let operation = "read message"
    guard UserPath.isName(file.name), file.size >= 0 else {
      throw WormholeError(
        .damaged, operation, claimed.name.id,
        because: file.size < 0
          ? "the header of the message states a negative size of its file"
          : "the header of the message states '\(file.name)' as the name of its file, which is not "
            + "a file name")
    }
    let from: String? =
      if case .member(let name) = claimed.name.sender { name } else { nil }
    let (arriving, name) = (options.mailbox.onFileProgress, file.receivedName)
    do throws(MemberDirectory.AttachmentProblem) {
      try home.verifyAttachment(claimed.name.fileName, size: file.size, checksum: file.checksum) {
        arriving?(from, FileProgress(name: name, done: $0, total: file.size))
        return !isOver()
      }
    } catch {
      let mayBeTaken = home.folder != .queues && claimed.isRepeated
      if error == .missing, mayBeTaken { return }
      throw WormholeError(error, operation, claimed.name.id, "the file of the message")
    }
  }

  /// Removes the files that dead processes have left in a member's `files/`, while no other process
  /// can be the member.
  func sweepFiles(of home: MemberDirectory) {
    sweepIdentifiers(of: home)
    do throws(Errno) {
      let swept = try home.sweepFiles { MessageName.messages(ofFile: $0) }
      guard !swept.isEmpty else { return }
      log(
        .info, "removed \(swept.count) files whose messages to '\(home.name)' no longer exist",
        about: LogSubject(member: home.name))
    } catch {
      home.log(.notice, "could not sweep the files of", error)
    }
  }

  /// Removes the second names that dead processes have left in a member's directory.
  private func sweepIdentifiers(of home: MemberDirectory) {
    do throws(Errno) {
      try home.sweepUnique {
        $0.begins(with: MessageName.uniquePrefix)
      } isOver: { (name) throws(Errno) in
        try home.isOver(name)
      }
    } catch {
      home.log(.notice, "could not sweep the ids of messages to", error)
    }
  }

  /// Removes the files that dead processes have left in a queue's `files/`, unless another worker
  /// could claim messages in the meantime.
  func sweepFiles(ofQueue queue: MemberDirectory, but own: MemberDirectory) {
    let others = try? queue.workers().filter { $0.escaped != own.escaped }
    guard let others, others.allSatisfy({ (try? $0.isPresent()) == false }) else { return }
    sweepFiles(of: queue)
  }

  /// Does the same for all members that are not joined, and for all queues without workers.
  ///
  /// A joined member has done so when it joined, and claims messages now.
  ///
  /// - Parameter isLooking: whether to report only, without removing.
  /// - Returns: the removed files, or the files to remove, as findings of an inspection.
  package func sweepFiles(isLooking: Bool) -> [WormholeContainerStorage.Diagnosis] {
    var swept: [WormholeContainerStorage.Diagnosis] = []
    let names = [Container.Folder.members, .queues].flatMap { folder in
      ((try? storage.names(in: folder)) ?? []).map { (folder, $0) }
    }
    for (folder, name) in names {
      // The inspection of members reports an entry that is not a member's directory.
      guard let home = try? storage.existingMember(name, in: folder) else { continue }
      let path = "\(home.path)/files"
      let next = folder == .queues ? "worker of" : "join as"
      func sweep() throws(Errno) {
        // A member whose presence cannot be determined is not swept.
        guard try !home.isPresent() else { return }
        for worker in try home.workers() { guard try !worker.isPresent() else { return } }
        swept += try home.sweepFiles(isLooking: isLooking) {
          MessageName.messages(ofFile: $0)
        }.map {
          WormholeContainerStorage.Diagnosis(
            .problem, "\(path)/\($0)", "a file whose message no longer exists",
            advice: "the next \(next) '\(name)' removes the file", isRepairable: true)
        }
      }
      guard isLooking else {
        storage.repair(path, sweep)
        continue
      }
      if let obstacle = WormholeContainerStorage.Diagnosis.obstacle(at: path, sweep) {
        swept.append(obstacle)
      }
    }
    return swept
  }
}

extension WormholeError {
  /// Describes a problem with the file of a message.
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
      self.init(.cancelled, operation, subject, because: "the member is leaving")
    case .notDurable(let error):
      self.init(
        .notDurable, operation, subject,
        because: "the change was made, but the directory could not be synced: \(error)",
        errno: error)
    }
  }
}
