internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The directories of senders that want receipts.
final class SenderHomes: Sendable {
  private let storage: Container
  private let known = MemberDirectoryCache<MessageName.Sender>()
  /// The closed directories that the log has reported.
  private let reported = Monitor<Set<Report>>([])

  private struct Report: Hashable {
    let sender: MessageName.Sender
    /// Whether the outcomes are dropped, and not written later.
    let isDropped: Bool
  }

  init(_ storage: Container) { self.storage = storage }

  /// Returns nil if the sender needs no receipt, no longer exists, or can never receive one.
  ///
  /// Throws a temporary error of the system: a receipt must not be dropped because of it.
  func home(of name: MessageName) throws(Errno) -> MemberDirectory? {
    guard name.wantsReceipt, let sender = name.sender else { return nil }
    if let home = known.home(of: sender) { return home }
    guard let found = try open(sender) else { return nil }
    known.keep(found, of: sender)
    return found
  }

  private func open(_ sender: MessageName.Sender) throws(Errno) -> MemberDirectory? {
    do throws(WormholeError) {
      return switch sender {
      case .member(let name): try storage.existingMember(name)
      case .guest(let name): try storage.existingMember(name, in: .guests)
      }
    } catch {
      let number = error.errno.map { Errno(rawValue: $0) }
      let forEver: Set<Errno?> = [nil, .notADirectory, .tooManyLinks, .accessDenied]
      guard !forEver.contains(number) else {
        if number == .accessDenied { report(sender, error) }
        return nil
      }
      throw number!
    }
  }

  /// Reports once for each sender that it is not notified of the outcomes of its messages.
  private func report(_ sender: MessageName.Sender, _ error: WormholeError) {
    guard isFirst(Report(sender: sender, isDropped: true)) else { return }
    let senderName =
      switch sender {
      case .member(let name), .guest(let name): name
      }
    storage.log(
      .warning, "the outcomes of messages from '\(senderName)' are dropped: \(error)",
      about: LogSubject(member: senderName), because: error)
  }

  private func isFirst(_ report: Report) -> Bool {
    reported.withLock { reported in
      // Names come and go; a sender that is forgotten is reported again.
      if reported.count >= 64 { reported = [] }
      return reported.insert(report).inserted
    }
  }

  /// Whether the log has not reported yet that this user may not write to the sender's receipts.
  func isFirstRefusal(of name: MessageName) -> Bool {
    guard name.wantsReceipt, let sender = name.sender else { return true }
    return isFirst(Report(sender: sender, isDropped: false))
  }

  func forget(_ name: MessageName) {
    if let sender = name.sender { known.forget(sender) }
  }
}
