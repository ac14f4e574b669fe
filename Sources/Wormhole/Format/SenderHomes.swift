internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The directories of senders that want receipts.
final class SenderHomes: Sendable {
  private let storage: Container
  private let known = MemberDirectoryCache<MessageName.Sender>()

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
      guard !forEver.contains(number) else { return nil }
      throw number!
    }
  }

  func forget(_ name: MessageName) {
    if let sender = name.sender { known.forget(sender) }
  }
}
