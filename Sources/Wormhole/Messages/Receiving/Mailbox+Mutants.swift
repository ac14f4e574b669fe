internal import SharedContainer
internal import Syscalls

extension Mailbox {
  /// What a receiver must not do; for tests.
  func claimLate(_ claimed: ClaimedName, for receiver: Int) -> OpenedFile? {
    guard
      case .sound(let bytes, _)? = try? home.read(
        claimed.name.text, in: .inbox, "read message")
    else {
      tell { $0.missing(by: receiver) }
      return nil
    }
    Processes.yield()
    _ = try? home.move(claimed.name.text, from: .inbox, .claimed, as: claimed.text)
    return open(claimed, bytes, for: receiver)
  }
}
