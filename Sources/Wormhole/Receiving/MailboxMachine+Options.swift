internal import WormholeSyscalls

extension MailboxOptions {
  /// The settings of a mailbox's state machine.
  var machine: MailboxMachine.Settings {
    var settings = MailboxMachine.Settings()
    settings.attempts = min(max(attempts, 1), 60)
    settings.firstDelay = max(1, retryDelay.inNanosecondsClamped)
    settings.longestDelay = max(settings.firstDelay, settings.longestDelay)
    settings.isStrict = keepsOrderOnRetry
    return settings
  }
}
