internal import WormholeContainerStorage
internal import WormholeRelay
internal import WormholeSyscalls

/// The words and heartbeats of a bridge that the server has returned over a connection.
struct Echo {
  fileprivate var isSubscribed = false
  fileprivate var isWaiting = false
  fileprivate var nextWord = Instant.longAgo
  /// How many words in a row were lost.
  fileprivate var silences = 0
  /// How many heartbeats were sent since the server has returned a heartbeat.
  var unheardBeats = 0

  /// The time of the next word; nil while a word is under way.
  var deadline: Instant? { isSubscribed && !isWaiting ? nextWord : nil }
}

/// The check of the subscriptions of a connection.
///
/// A server replies to pings and stores bundles also after the loss of a subscription, so nothing
/// else shows the loss. Without the subscription for words, this bridge answers no other machine,
/// and a new flow waits for ever. Without the subscription for replies, no request ends. Without
/// the subscription for heartbeats, all other machines look absent. So the bridge sends a word to
/// itself and listens for its own heartbeats. The way of the word needs the first subscription, and
/// the way of the reply needs the second. The leaf returns words and heartbeats, with or without
/// the hub.
extension Bridge {
  /// How many words in a row may be lost before the bridge connects again.
  ///
  /// On a busy machine, a single word or heartbeat may be late.
  private static let mostSilences = 2
  private static let mostUnheardBeats = 3
  private static let echoTime = Duration.seconds(2)
  /// The first word shows most losses: a server loses a new subscription at once, or never.
  private static let echoInterval = Duration.seconds(10)

  /// Subscribes to words, and sends a word to the own machine at its time.
  ///
  /// - Returns: false if the connection was closed, because the server has lost a subscription.
  func listen(_ link: ServerLink, _ now: Instant) -> Bool {
    if !link.echo.isSubscribed {
      link.echo.isSubscribed = true
      link.connection.subscribe(Subjects.words(to: place.machine)) { [weak self] message in
        self?.take(word: message)
      }
    }
    guard link.echo.silences < Self.mostSilences,
      link.echo.unheardBeats <= Self.mostUnheardBeats
    else {
      log(.warning, "the server has lost a subscription: connecting again")
      link.connection.close()
      return false
    }
    guard !link.echo.isWaiting, link.echo.nextWord <= now else { return true }
    link.echo.isWaiting = true
    link.connection.request(
      Subjects.word(.here, to: place.machine, from: place.machine), [], within: Self.echoTime
    ) { [weak link] result in
      guard let link else { return }
      link.echo.isWaiting = false
      link.echo.nextWord = .now + Self.echoInterval
      guard case .failure(let failure) = result else { return link.echo.silences = 0 }
      // A refused or unsent word shows no lost subscription.
      guard [.timedOut, .noResponders].contains(failure.kind) else { return }
      link.echo.silences += 1
      link.echo.nextWord = .longAgo
    }
    return true
  }
}
