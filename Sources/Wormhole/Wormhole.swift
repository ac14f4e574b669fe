internal import Dispatch
internal import PropertyLists
public import SharedContainer
internal import Synchronization
internal import Syscalls

/// A directory in which processes meet: its channels, defaults and notices.
///
/// Open it by the identifier of a group or by its path. Each opening stands for itself: two in one
/// process see each other as two processes would. It may be used from any thread, and stays open as
/// long as it, or anything that was got from it, is kept. What calls closures goes on until it is
/// stopped, or all of it until `close()`.
///
/// What waits or syncs can be called with `await` too, and does not hold up other tasks then.
///
/// Nothing waits for ever. Reading takes no lock; what changes something waits for the others for
/// ``Options-swift.struct/timeout`` at most, on the thread that called.
public final class Wormhole: Sendable {
  package let container: Container
  let options: Options
  let feeds: SlotFeeds
  let receivers = Receivers()
  let quotas: Quotas
  /// What goes on until it is stopped.
  package let begun: Begun
  /// Where is looked for what is to be looked for later, as channels that a watcher of a prefix has
  /// not known.
  ///
  /// One for each opening: a file system that does not answer holds up nobody elsewhere.
  let finding = DispatchQueue(label: "wormhole.finding")

  /// Opens the container of a group, one per user; makes it if need be.
  ///
  /// The group's directory lies below the XDG state directory, in `wormhole/groups`, or below
  /// `WORMHOLE_ROOT` where that is set. It is for the group's programs to use; the container is
  /// `.wormhole` inside it.
  ///
  /// - Parameters:
  ///   - group: any name, by custom one like `group.com.example.cinema`.
  ///   - options: what holds for all that is done through this object.
  public convenience init(group: String, options: Options = Options()) throws(WormholeError) {
    self.init(try Self.container(of: group, options), options)
  }

  /// Opens the container at a path; makes one there if need be, in an empty or a new directory.
  ///
  /// It is refused if it belongs to somebody else, if others may write to it, or if the path ends
  /// in a symbolic link.
  public convenience init(directory: String, options: Options = Options()) throws(WormholeError) {
    self.init(try Self.container(at: directory, options), options)
  }

  init(_ container: Container, _ options: Options) {
    self.container = container
    self.options = options
    feeds = SlotFeeds(options.limits)
    quotas = Quotas(options)
    begun = Begun(container.path)
  }

  static func container(
    of group: String, _ options: Options
  ) throws(WormholeError) -> Container {
    let location = try ContainerLocation(group: group)
    if options.mayCreate { try location.prepare(options.sharing) }
    return try container(at: location.container, options)
  }

  static func container(
    at directory: String, _ options: Options
  ) throws(WormholeError) -> Container {
    try Container.open(directory, create: options.mayCreate, options: options.forContainer)
  }

  /// Ends all that was begun through this opening and goes on until it is stopped, and lets nothing
  /// of the kind begin any more; once this has returned, no closure of theirs is called again.
  ///
  /// Members leave. As with ``Subscription/stop()`` of each, a call that is under way on another
  /// thread is waited for. Sequences end with their iterators. To read and to change goes on as
  /// before.
  public func close() { begun.close() }

  /// The path of the container.
  public var directory: String { container.path }

  /// The names of the channels that were ever written, cleared ones among them, in order.
  ///
  /// - Parameter prefix: what the names begin with.
  public func channels(prefix: String = "") throws(WormholeError) -> [String] {
    try container.slotNames(in: .channels).filter { $0.begins(with: prefix) }
  }

  /// How many watchers there are, counted once for each channel they watch.
  package var watchers: Int { feeds.listenerCount }

  /// How long a call that begins now may wait.
  var patience: Patience {
    let terms = OffPool.terms
    return Patience(
      until: terms?.deadline ?? .now + options.timeout, cancellation: terms?.cancellation)
  }

  func log(
    _ level: LogLevel, _ text: String, about subject: LogSubject = LogSubject(),
    because cause: (any Error)? = nil
  ) {
    container.log(level, text, about: subject, because: cause)
  }

  func log(_ level: LogLevel, _ error: WormholeError, about subject: LogSubject = LogSubject()) {
    container.log(level, error, about: subject)
  }
}
