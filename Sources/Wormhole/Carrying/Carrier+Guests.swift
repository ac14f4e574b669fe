internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The end of proxies that stand for guests.
///
/// A guest of another machine has a proxy here as long as a message waits here that it has sent, or
/// an outcome for it. Each command that waits is a guest, so the proxies must not stay.
extension Carrier {
  /// Removes the proxies of guests that no message here names as its sender, and that have no
  /// outcome left to carry.
  ///
  /// The caller delivers nothing meanwhile.
  package func removeUnusedGuests() throws(WormholeError) -> [Resident] {
    let guests = try proxies().filter { proxy in
      if case .guest = proxy.resident { true } else { false }
    }
    guard !guests.isEmpty else { return [] }
    let senders = try sendersOfMessages()
    var removed: [Resident] = []
    for proxy in guests where !senders.contains(proxy.name) {
      do throws(Errno) {
        // After the look at the messages: one that was settled meanwhile has left its outcome here.
        guard
          try !proxy.home.contains(.receipts, where: { ReceiptName(String(cString: $0)) != nil }),
          let presence = try proxy.home.takePresence()
        else { continue }
        container.storage.removeGuest(proxy.home, presence)
        removed.append(proxy.resident)
      } catch {
        throw WormholeError(error, "remove guest", proxy.name, at: proxy.home)
      }
    }
    return removed
  }

  /// The guests that have sent messages to members and queues of this machine.
  private func sendersOfMessages() throws(WormholeError) -> Set<String> {
    var found: Set<String> = []
    for resident in try members() {
      let home = try container.storage.existingMember(resident.name, in: resident.folder)
      guard let home else { continue }
      do throws(Errno) {
        // A listing may miss a message whose next attempt begins meanwhile. Without its proxy the
        // outcome would be lost: such a listing is repeated.
        try home.forEachMessage { place in
          if case .guest(let digits) = place.name.sender { found.insert(digits) }
        }
      } catch {
        guard error != .noSuchFile else { continue }
        throw WormholeError(error, "list messages to", home.name, at: home)
      }
    }
    return found
  }

  // MARK: Room

  /// Whether the inbox of a member of this machine has as many messages as senders may leave there.
  package func isFull(_ receiver: String) throws(WormholeError) -> Bool {
    guard let home = try container.storage.existingMember(receiver) else { return false }
    var count = 0
    try naming("count messages to", home, .inbox) { () throws(Errno) in
      for part in [MemberDirectory.Part.later, .inbox] {
        try home.list(part) { if MessageName($0) != nil { count += 1 } }
      }
    }
    return count >= container.options.mailbox.maximumQueuedMessages
  }
}
