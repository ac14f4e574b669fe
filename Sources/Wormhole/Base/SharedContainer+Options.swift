public import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The options for opening a container, and for all work through the instance.
public struct Options: Sendable {
  /// The users of the container: its owner alone, or all members of the directory's group.
  ///
  /// All programs that share a container must use the same value. A directory that is to become
  /// the container of a group has the mode 2770, or is made here; the mode of a directory that
  /// exists is never changed.
  public var sharing: Sharing

  /// The failures that a change survives, unless the call specifies its own durability.
  public var durability: Durability

  /// The time for which the holder of a lock may be suspended before this process takes the lock
  /// over; by default one second, at least a hundredth of a second.
  ///
  /// A suspended holder is distinguished from a slow holder, which has ten seconds. If the lease
  /// is below half a second, all programs that share the container should agree on the lease:
  /// holders renew their heartbeat as often as the default lease requires.
  public var lease: Duration

  /// The time for which a call waits for a lock, before the call throws
  /// ``WormholeError/Code-swift.struct/timedOut``.
  public var timeout: Duration

  /// The size limit, in bytes, of the file for a value, by default 64 MiB; the file takes about 150
  /// bytes more than the value.
  public var maximumValueBytes: Int

  /// The options for messages between members.
  public var mailbox: MailboxOptions

  /// Whether a missing container is made.
  ///
  /// Otherwise a missing container is an error, ``WormholeError/Code-swift.struct/notFound`` or
  /// ``WormholeError/Code-swift.struct/notAContainer``.
  public var createsIfMissing: Bool

  /// The writer of values, as shown to readers: by default the program and its process ID.
  public var writerName: String {
    get { givenName ?? Self.ownName }
    set { givenName = newValue }
  }

  /// Determined only for writers, because it needs a call to the kernel.
  private static let ownName: String = {
    let process = ProcessIdentity.current
    return "\(process.program) (\(process.process))"
  }()
  private var givenName: String?

  /// Whether the instance only reads, and needs no preparations for writers.
  package var isForReading = false

  /// The time for which a slow process may hold a lock.
  package var cap = LockPolicy.defaultCap

  /// The time after joining for which a member keeps immediate messages and requests without a
  /// handler.
  package var youth = Duration.seconds(1)

  /// The time for which a process is believed to be starting a member, before another process
  /// does.
  package var wakeGrace = Duration.seconds(5)

  /// Receives internal events that no call reports as an error: repaired damage, takeovers of
  /// locks, watches that have to poll.
  ///
  /// Besides the level and a sentence, an entry contains its subject, as far as the subject is
  /// known. The closure is called on the thread of the event, and must not wait.
  public var log: LogHook

  /// The remaining inputs of the process, which tests control.
  package var environment = Environment()

  /// The clock for messages, in place of the machine's clock.
  package var clock: (any MailClock)?

  /// The link between the members; nil except in tests.
  package var link: (any MessageLink)?

  /// Makes options; the defaults suit programs of one user.
  ///
  /// Without a writer's name, the writer is the program with its process ID.
  public init(
    sharing: Sharing = .owner, durability: Durability = .process,
    lease: Duration = Lease.defaultTime, timeout: Duration = .seconds(30),
    maximumValueBytes: Int = ContainerOptions.defaultLargestFile,
    mailbox: MailboxOptions = MailboxOptions(), createsIfMissing: Bool = true,
    writerName: String? = nil, log: @escaping LogHook = { _ in }
  ) {
    self.sharing = sharing
    self.durability = durability
    self.lease = lease
    self.timeout = timeout
    self.maximumValueBytes = maximumValueBytes
    self.mailbox = mailbox
    self.createsIfMissing = createsIfMissing
    givenName = writerName
    self.log = log
  }

  var forContainer: ContainerOptions {
    var options = ContainerOptions()
    options.sharing = sharing
    // Waiters check eight times in a lease.
    options.lease = max(lease, .milliseconds(10))
    options.cap = cap
    options.isForReading = isForReading
    options.largestFile = maximumValueBytes
    options.environment = environment
    options.environment.log = log
    return options
  }

  /// The limits for the size of one value.
  var limits: PropertyListLimits {
    var limits = PropertyListLimits()
    limits.bytes = maximumValueBytes
    limits.expandedBytes = max(limits.expandedBytes, maximumValueBytes.multipliedCapped(by: 2))
    return limits
  }
}

extension Int {
  fileprivate func multipliedCapped(by factor: Int) -> Int {
    let (product, overflow) = multipliedReportingOverflow(by: factor)
    return overflow ? .max : product
  }
}
