internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// What goes back to those who ask, and to those who wait to be told that they were heard.
extension LiveMailbox {
  func refuse(_ name: LiveName, _ core: LiveMessage, _ reason: String) {
    reply(name, core) {
      .content(try BinaryEncoder().encode(LiveFile.Refusing(error: reason)))
    }
  }

  func reply(_ name: LiveName, _ core: LiveMessage, _ answer: () throws -> LiveAnswer) {
    do throws(WormholeError) {
      try self.answer(
        core.header, name.id, WormholeError.writing("confirm message", core.header.kind, answer))
    } catch {
      hole.log(.error, error, about: LogSubject(member: home.name))
    }
  }

  /// Puts an answer where the asker looks; one that is no more needs none.
  func answer(
    _ request: LiveFile.Header, _ id: String, _ answer: LiveAnswer
  ) throws(WormholeError) {
    guard let folder = try askers.folder(request.from, request.incarnation) else { return }
    let stamp = try MessageStamp(hole.container)
    if case .word(let word) = answer, say(word, in: folder, stamp, id) { return }
    let bytes = try WormholeError.writing("answer request of", request.from, answer.bytes)
    let name = LiveName(stamp, .answer, id: id)
    do throws(Errno) {
      try hole.container.place(bytes, in: folder, as: name.text)
    } catch {
      guard error == .noSuchFile else {
        throw WormholeError(error, "answer request of", request.from)
      }
      askers.forget(request.incarnation)
    }
  }

  /// Whether it could be said so: a file system, or a sandbox, may refuse what makes such a file,
  /// and then it is written as any other answer.
  private func say(
    _ word: Bool, in folder: OpenDirectory, _ stamp: MessageStamp, _ id: String
  ) -> Bool {
    let name = LiveName(stamp, word ? .yes : .no, id: id)
    return (try? folder.descriptor.makeFile(name.text, mode: 0o600)) != nil
  }
}
