internal import Dispatch
public import Observation
public import WormholeContainerStorage

/// A channel's value as a model for a user interface.
///
/// A reader of ``value`` inside `withObservationTracking` is notified when the value changes, in
/// any process. The model is isolated to the main actor; changed files are read on other threads.
/// The watch ends with the model.
@MainActor @Observable
public final class ObservableChannel<Value: Codable & Sendable> {
  /// The channel behind the model.
  @ObservationIgnored public nonisolated let channel: ConfigurationChannel<Value>
  /// The latest known good value; at first, and after a clear, the default.
  public private(set) var value: Value
  @ObservationIgnored private var watch: StopOnRelease<Listener>?

  /// Reads the value, and begins to watch the channel.
  public init(_ channel: ConfigurationChannel<Value>) throws(WormholeError) {
    self.channel = channel
    // Read before the watch begins: each finding of the watch is at least as new.
    value = try channel.value
    let log = channel.channel.container.failureHandler(
      nil, about: LogSubject(channel: channel.name))
    watch = try channel.plan.observeBriefly(
      on: .main, { [weak self] value in MainActor.assumeIsolated { self?.take(value) } }, log)
  }

  private func take(_ value: Value) {
    if !isUnchanged(self.value, value) { self.value = value }
  }
}
