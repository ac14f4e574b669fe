public import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A directory for communication between processes: channels, defaults and notices.
///
/// Open it by the identifier of a group or by its path. Each instance is independent: two instances
/// in a process see each other like two processes. An instance may be used from any thread. The
/// instance stays open as long as the program retains the instance or an object from it. A
/// subscription continues until its stop; `close()` ends all subscriptions.
///
/// A call that waits or syncs has an async overload, which blocks no task.
///
/// No call waits for ever. Reading takes no lock. A call that changes a value waits for other
/// processes for ``Options/timeout`` at most, on the calling thread.
public final class SharedContainer: Sendable {
  package let storage: Container
  let options: Options
  let feeds: SlotFeeds
  /// The parts of higher layers that belong to this instance.
  let services = Services()
  /// All subscriptions, each until its stop.
  package let subscriptions: ActiveSubscriptions
  /// The queue for later work, such as joining channels that a watcher of a prefix has discovered.
  ///
  /// Each instance has its own: an unresponsive file system delays no other instance.
  let background = WorkQueue()

  /// Opens the container of a group, one per user; makes it if need be.
  ///
  /// The group's directory is below the XDG state directory, in `wormhole/groups`, or below
  /// `WORMHOLE_ROOT` if this variable is set. The directory is for the group's programs to use; the
  /// container is the subdirectory `.wormhole`.
  ///
  /// - Parameters:
  ///   - group: any name, by custom a name like `group.com.example.cinema`.
  ///   - options: the options for all work through this object.
  public convenience init(group: String, options: Options = Options()) throws(WormholeError) {
    self.init(try Self.container(of: group, options), options)
  }

  /// Opens the container at a path; makes one there if need be, in an empty or a new directory.
  ///
  /// A container is refused if it belongs to another user, if other users may write to it, or if
  /// the path ends in a symbolic link.
  public convenience init(directory: String, options: Options = Options()) throws(WormholeError) {
    self.init(try Self.container(at: directory, options), options)
  }

  init(_ storage: Container, _ options: Options) {
    self.storage = storage
    self.options = options
    feeds = SlotFeeds(options.limits, options.time)
    subscriptions = ActiveSubscriptions(storage.path)
  }

  static func container(
    of group: String, _ options: Options
  ) throws(WormholeError) -> Container {
    let location = try ContainerLocation(group: group)
    if options.createsIfMissing { try location.prepare(options.sharing) }
    return try container(at: location.container, options)
  }

  static func container(
    at directory: String, _ options: Options
  ) throws(WormholeError) -> Container {
    var opening = options.forContainer
    // Values are saved beside all other work that no caller waits for.
    opening.callLater = { moment, call in CallThreads.background.add(at: moment, call) }
    return try Container.open(directory, create: options.createsIfMissing, options: opening)
  }

  /// Ends all subscriptions of this instance, and accepts no more; once this has returned, none of
  /// their closures is called again.
  ///
  /// Members leave. As with ``Subscription/stop()`` of each subscription, the call waits for a call
  /// in progress on another thread. Sequences end with their iterators. Values can be read and
  /// changed as before.
  ///
  /// Changes with ``Durability/process`` are usually synced within a second, and `close()` waits
  /// until the disk has the latest of this instance. A program that ends without `close()` loses
  /// none of them; the next change of the same channel may then have to wait for the disk.
  public func close() {
    subscriptions.close()
    storage.finishSaving()
  }

  /// The path of the container.
  public var directory: String { storage.path }

  /// Returns the names of all channels that were ever written, including cleared ones, in order.
  ///
  /// - Parameter prefix: the beginning of the names.
  public func channels(prefix: String = "") throws(WormholeError) -> [String] {
    try storage.slotNames(in: .channels).filter { $0.begins(with: prefix) }
  }

  /// The number of watchers, counted once for each watched channel.
  package var watchers: Int { feeds.listenerCount }

  /// The time limit and cancellation of a call that begins now.
  var patience: Patience {
    let terms = OffPool.terms
    return Patience(
      until: terms?.deadline ?? .now + options.timeout, cancellation: terms?.cancellation)
  }

  func log(
    _ level: LogLevel, _ text: String, about subject: LogSubject = LogSubject(),
    because cause: (any Error)? = nil
  ) {
    storage.log(level, text, about: subject, because: cause)
  }

  func log(_ level: LogLevel, _ error: WormholeError, about subject: LogSubject = LogSubject()) {
    storage.log(level, error, about: subject)
  }
}
