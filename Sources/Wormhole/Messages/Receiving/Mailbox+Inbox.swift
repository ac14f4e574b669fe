internal import Dispatch
internal import SharedContainer
internal import Syscalls

/// An inbox that somebody has removed, or moved away, while it was listened to.
extension Mailbox {
  /// For how long nothing must have changed in the member's directory before it is made again.
  ///
  /// Whoever is removing that directory as a whole would find it not empty. A sender that comes
  /// first makes it as well.
  private static let pause = DispatchTimeInterval.milliseconds(200)

  /// Makes it again, once nobody removes anything there, which the watch hears of.
  func remakeInbox() { remakeInbox(unlessChangedSince: home.lastChange) }

  private func remakeInbox(unlessChangedSince change: Int64?) {
    hole.finding.asyncAfter(deadline: .now() + Self.pause) { [weak self] in
      guard let self, !isClosed, !home.isStale else { return }
      let latest = home.lastChange
      guard latest == change else { return remakeInbox(unlessChangedSince: latest) }
      do throws(Errno) {
        _ = try home.part(.inbox)
        log(.warning, "the inbox of '\(home.name)' was removed; it is there again")
      } catch {
        log(.error, "cannot make the inbox of '\(home.name)' again: \(error)", because: error)
      }
    }
  }
}
