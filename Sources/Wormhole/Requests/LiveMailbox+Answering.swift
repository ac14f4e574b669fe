internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// What goes back to those who ask, and to those who wait to be told that they were heard.
extension LiveMailbox {
  func refuse(_ name: LiveName, _ core: LiveMessage, _ reason: String) {
    reply(name, core) { try BinaryEncoder().encode(LiveFile.Refusing(error: reason)) }
  }

  func reply(_ name: LiveName, _ core: LiveMessage, _ bytes: () throws -> [UInt8]) {
    do throws(WormholeError) {
      try answer(
        core.header, name.id, WormholeError.writing("confirm message", core.header.kind, bytes))
    } catch {
      hole.log(.error, error, about: LogSubject(member: home.name))
    }
  }

  /// Puts an answer where the asker looks; one that is no more needs none.
  func answer(_ request: LiveFile.Header, _ id: String, _ bytes: [UInt8]) throws(WormholeError) {
    guard let folder = try askers.folder(request.from, request.incarnation) else { return }
    let name = LiveName(try MessageStamp(hole.container), .answer, id: id)
    do throws(Errno) {
      try hole.container.place(bytes, in: folder, as: name.text)
    } catch {
      guard error == .noSuchFile else {
        throw WormholeError(error, "answer request of", request.from)
      }
      askers.forget(request.incarnation)
    }
  }
}
