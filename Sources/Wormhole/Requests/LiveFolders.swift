internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The folders of requesters.
final class LiveFolders: Sendable {
  private let storage: Container
  private let known = Monitor<[RequesterKey: OpenDirectory]>([:])
  /// The requesters of the last checks: whether each was gone, and how long the result is valid.
  private let looked = Monitor<[RequesterKey: (isGone: Bool, until: Instant)]>([:])

  /// The requester that a request states.
  ///
  /// A process may state another's incarnation as its own, and make a folder of this name.
  private struct RequesterKey: Hashable {
    let mark: String
    let incarnation: Incarnation
  }

  init(_ storage: Container) { self.storage = storage }

  /// Returns nil if the incarnation has no folder any more.
  func folder(_ mark: String, _ incarnation: Incarnation?) throws(WormholeError) -> OpenDirectory? {
    guard let incarnation else { return nil }
    let requester = RequesterKey(mark: mark, incarnation: incarnation)
    if let folder = known.withLock({ $0[requester] }) { return folder }
    let home = try home(mark)
    return try naming("find the requester", mark) { () throws(Errno) in
      guard let folder = try home?.live(incarnation) else { return nil }
      known.withLock { known in
        // Requesters come and go; the folders of active requesters are opened again.
        if known.count >= 64 { known = [:] }
        known[requester] = folder
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

  func forget(_ mark: String, _ incarnation: Incarnation?) {
    guard let incarnation else { return }
    known.withLock { $0[RequesterKey(mark: mark, incarnation: incarnation)] = nil }
  }

  /// Returns whether no process can read a reply any more; the result may be slightly out of date.
  ///
  /// An error does not count as the end of the requester.
  func isGone(_ mark: String, _ incarnation: Incarnation?) -> Bool {
    guard let incarnation else { return true }
    let now = Instant.now
    let requester = RequesterKey(mark: mark, incarnation: incarnation)
    if let look = looked.withLock({ $0[requester] }), now < look.until { return look.isGone }
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
      looked[requester] = (isGone, isGone ? .distantFuture : now + .milliseconds(50))
    }
    return isGone
  }
}
