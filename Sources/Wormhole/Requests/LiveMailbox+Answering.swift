internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Replies to requests, and confirmations for senders that wait for a handler.
extension LiveMailbox {
  func hasWaited(_ name: LiveName) -> Bool {
    container.options.environment.sinceBoot() - name.sent > Duration.milliseconds(10).inNanoseconds
  }

  func refuse(_ name: LiveName, _ core: LiveMessage, _ reason: String) {
    reply(name, core) {
      .content(try BinaryEncoder().encode(LiveFile.RefusalBody(error: reason)))
    }
  }

  func reply(_ name: LiveName, _ core: LiveMessage, _ answer: () throws -> LiveAnswer) {
    do throws(WormholeError) {
      try self.answer(
        core.header, name.id, WormholeError.writing("confirm message", core.header.kind, answer))
    } catch {
      container.log(.error, error, about: LogSubject(member: home.name))
    }
  }

  /// Places a reply in the requester's folder; an ended requester needs no reply.
  func answer(
    _ request: LiveFile.Header, _ id: String, _ answer: LiveAnswer
  ) throws(WormholeError) {
    guard let folder = try askers.folder(request.from, request.incarnation) else { return }
    let stamp = try MessageStamp(container.storage)
    if case .word(let word) = answer, say(word, in: folder, stamp, id) { return }
    let bytes = try WormholeError.writing("reply to the request of", request.from, answer.bytes)
    let name = LiveName(stamp, .answer, id: id)
    do throws(Errno) {
      try container.storage.addFile(bytes, to: folder, as: name.text)
    } catch {
      guard error == .noSuchFile else {
        throw WormholeError(error, "reply to the request of", request.from)
      }
      askers.forget(request.from, request.incarnation)
    }
  }

  /// Creates an empty file whose name is the reply, and returns whether that succeeded.
  ///
  /// If a file system or a sandbox refuses the call for such a file, the reply is written in the
  /// usual form.
  private func say(
    _ word: Bool, in folder: OpenDirectory, _ stamp: MessageStamp, _ id: String
  ) -> Bool {
    let name = LiveName(stamp, word ? .yes : .no, id: id)
    return (try? folder.descriptor.makeFile(name.text, mode: 0o600)) != nil
  }
}

extension Participant {
  var live: LiveMailbox {
    services.get { LiveMailbox(container, home, liveFolder, incarnation, mark: mark) }
  }
}
