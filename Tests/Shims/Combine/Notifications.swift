public import Foundation

extension NotificationCenter {
  /// A publisher of the notifications of a name.
  public struct Publisher: Combine.Publisher, @unchecked Sendable {
    // The center is thread-safe, and the object is compared and not used.

    /// The published notifications.
    public typealias Output = Notification
    /// The publisher never fails.
    public typealias Failure = Never

    /// The center that posts the notifications.
    public let center: NotificationCenter
    /// The name of the notifications.
    public let name: Notification.Name
    /// The object whose notifications are published; nil for all.
    public let object: AnyObject?

    /// Publishes the notifications of a name.
    public init(center: NotificationCenter, name: Notification.Name, object: AnyObject? = nil) {
      (self.center, self.name, self.object) = (center, name, object)
    }

    /// Starts a subscription, which receives on the thread that posts.
    public func subscribe(_ observer: Observer<Notification, Never>) {
      let token = center.addObserver(forName: name, object: object, queue: nil) {
        observer.receive($0)
      }
      observer.follow(AnyCancellable { center.removeObserver(token) })
    }
  }

  /// Returns a publisher of the notifications of a name.
  public func publisher(for name: Notification.Name, object: AnyObject? = nil) -> Publisher {
    Publisher(center: self, name: name, object: object)
  }
}

extension Timer {
  /// Returns a publisher of the time, which starts with `autoconnect()` or `connect()`.
  ///
  /// The run loop and the mode are not used: the times are published on the main queue.
  public static func publish(
    every interval: TimeInterval, tolerance: TimeInterval? = nil, on runLoop: RunLoop,
    in mode: RunLoop.Mode
  ) -> TimerPublisher { TimerPublisher(interval) }

  /// A publisher of the time at regular intervals.
  public final class TimerPublisher: Combine.Publisher, @unchecked Sendable {
    // The state is behind a lock.

    /// The published times.
    public typealias Output = Date
    /// The publisher never fails.
    public typealias Failure = Never

    private let outlets = Outlets<Date, Never>()
    private let interval: TimeInterval

    init(_ interval: TimeInterval) { self.interval = interval }

    /// Starts a subscription.
    public func subscribe(_ observer: Observer<Date, Never>) { outlets.add(observer) }

    /// Starts the publisher, until the returned object is cancelled or released.
    public func connect() -> any Cancellable {
      let timer = DispatchSource.makeTimerSource(queue: .main)
      timer.schedule(deadline: .now() + interval, repeating: interval)
      let outlets = outlets
      timer.setEventHandler { outlets.send(.value(Date())) }
      timer.resume()
      return AnyCancellable { timer.cancel() }
    }

    /// Returns a publisher that runs from its first subscription on, for each subscription.
    public func autoconnect() -> AnyPublisher<Date, Never> {
      AnyPublisher { [interval] observer in
        let publisher = TimerPublisher(interval)
        publisher.subscribe(observer)
        let running = publisher.connect()
        observer.follow(AnyCancellable { running.cancel() })
      }
    }
  }
}
