internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The folders of requesters, by incarnation.
final class LiveFolders: Sendable {
  private let storage: Container
  private let known = Monitor<[Incarnation: OpenDirectory]>([:])
  /// The requesters of the last checks: whether each was gone, and how long the result is valid.
  private let looked = Monitor<[String: (isGone: Bool, until: Instant)]>([:])

  init(_ storage: Container) { self.storage = storage }

  /// Returns nil if the incarnation has no folder any more.
  func folder(_ mark: String, _ incarnation: Incarnation?) throws(WormholeError) -> OpenDirectory? {
    guard let incarnation else { return nil }
    if let folder = known.withLock({ $0[incarnation] }) { return folder }
    let home = try home(mark)
    return try naming("find the requester", mark) { () throws(Errno) in
      guard let folder = try home?.live(incarnation) else { return nil }
      known.withLock { known in
        // Requesters come and go; the folders of active requesters are opened again.
        if known.count >= 64 { known = [:] }
        known[incarnation] = folder
      }
      return folder
    }
  }

  private func home(_ mark: String) throws(WormholeError) -> MemberDirectory? {
    guard let sender = MessageName.Sender(mark) else { return nil }
    return switch sender {
    case .member(let name): try storage.existingMember(name)
    case .guest(let name): try storage.existingMember(name, in: .guests)
    }
  }

  func forget(_ incarnation: Incarnation?) {
    guard let incarnation else { return }
    known.withLock { $0[incarnation] = nil }
  }

  /// Returns whether no process can read a reply any more; the result may be slightly out of date.
  ///
  /// An error does not count as the end of the requester.
  func isGone(_ mark: String, _ incarnation: Incarnation?) -> Bool {
    guard let incarnation else { return true }
    let now = Instant.now
    // Both are in the key: a process may use another's incarnation as its own.
    let asker = "\(mark)/\(incarnation)"
    if let look = looked.withLock({ $0[asker] }), now < look.until { return look.isGone }
    var isGone = false
    do {
      // A member that has joined again has removed the folder of its previous incarnation.
      guard let home = try home(mark) else { throw Errno.noSuchFile }
      isGone = try home.live(incarnation) == nil || !home.isPresent()
    } catch {
      isGone = error as? Errno == .noSuchFile
    }
    looked.withLock { looked in
      if looked.count >= 64 { looked = [:] }
      looked[asker] = (isGone, isGone ? .distantFuture : now + .milliseconds(50))
    }
    return isGone
  }
}
