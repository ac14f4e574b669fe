internal import WormholeContainerStorage

extension Mailbox {
  /// Returns the messages of a listing, without the messages that the link holds back.
  func arrived(_ names: [MessageName], before start: MessageStamp) -> [MessageName] {
    guard let link = container.options.link else { return names }
    // The listing of later messages may be incomplete, and is repeated.
    let all = names.sorted()
    let settled = all.filter { $0.stamp < start }
    let here = link.haveArrived(settled.map { LinkLetter($0, to: home.name) }) { [weak self] in
      self?.wake(urgent: true)
    }
    return zip(settled, here).filter(\.1).map(\.0) + all.filter { $0.stamp >= start }
  }

  /// Returns whether the link redelivers a message, as if this process had died before its
  /// acknowledgement.
  func isAcknowledgementLost(_ name: MessageName, _ place: Int) -> Bool {
    guard hasLink, let link = container.options.link, attempts > 1 else { return false }
    return link.losesAcknowledgement(of: LinkLetter(name, to: home.name), place: place)
  }
}
