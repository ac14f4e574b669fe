internal import Dispatch
internal import SharedContainer
internal import Syscalls

/// An inbox that somebody has removed, or moved away, while it was listened to.
extension Mailbox {
  /// How long after its end it is made again.
  ///
  /// Not at once: whoever is removing the whole directory of the member would find it not empty. A
  /// sender that comes first makes it as well.
  private static let pause = DispatchTimeInterval.milliseconds(100)

  /// Makes it again, which the watch hears of.
  func remakeInbox() {
    Wormhole.finding.asyncAfter(deadline: .now() + Self.pause) { [weak self] in
      guard let self, !isClosed, !home.isStale else { return }
      do throws(Errno) {
        _ = try home.part(.inbox)
        hole.log(.warning, "the inbox of '\(home.name)' was removed; it is there again")
      } catch {
        hole.log(.error, "cannot make the inbox of '\(home.name)' again: \(error)")
      }
    }
  }
}
