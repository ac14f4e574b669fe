internal import PropertyLists
public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// How a container is opened, and what holds for all that is done through it.
  public struct Options: Sendable {
    /// Who may use the container: its owner alone, or all members of the directory's group.
    ///
    /// All programs that share a container say the same.
    public var sharing = Sharing.owner

    /// What a change survives, where the call does not say.
    public var durability = Durability.process

    /// How long a process that holds a lock may stand still before this one takes it over; a
    /// hundredth of a second at least.
    ///
    /// It is told from one that is only slow, which has ten seconds. All who share a container
    /// agree on one below half a second: holders show that they run as often as the usual one asks
    /// for.
    public var lease = Duration.seconds(1)

    /// How long a call waits for a lock before it throws
    /// ``WormholeError/Code-swift.struct/timedOut``.
    public var timeout = Duration.seconds(30)

    /// The largest file, in bytes, that a value may make; it takes about 150 bytes more than the
    /// value does.
    public var largestValue = 64 << 20

    /// What holds for messages between members.
    public var mail = MailOptions()

    /// Whether a container that is missing is made.
    ///
    /// Otherwise it is an error, ``WormholeError/Code-swift.struct/notFound`` or
    /// ``WormholeError/Code-swift.struct/notAContainer``.
    public var mayCreate = true

    /// Who values are from, for those who read them: by default the program and its process number.
    public var name: String {
      get { givenName ?? Self.ownName }
      set { givenName = newValue }
    }

    /// Asked for only by those who write: the kernel has to be asked for it.
    private static let ownName: String = {
      let process = ProcessIdentity.current
      return "\(process.program) (\(process.process))"
    }()
    private var givenName: String?

    /// Whether nothing but reading is meant, so that what only writers need is not seen to.
    package var isForReading = false

    /// How long a process that is only slow may hold a lock.
    package var cap = Duration.seconds(10)

    /// For how long after joining a member keeps what comes for now and nobody in it wants yet.
    package var youth = Duration.seconds(1)

    /// How long somebody is believed to be about to start a member before another one does it.
    package var wakeGrace = Duration.seconds(5)

    /// Is told what happens inside and is nobody's error: damage that was mended, locks that were
    /// taken over, watches that have to poll.
    ///
    /// Besides the level and a sentence an entry says what it is about, as far as that is known.
    /// This is called on whatever thread meets it, and must not wait.
    public var log: LogHook = { _ in }

    /// The rest of what comes from outside, which tests hold in their hands.
    package var environment = Environment()

    /// What messages go by in place of the machine's clock.
    package var clock: (any MailClock)?

    /// What stands between the members; nil but in tests.
    package var link: (any MessageLink)?

    /// The options that suit programs of one user.
    public init() {}

    var forContainer: ContainerOptions {
      var options = ContainerOptions()
      options.sharing = sharing
      // Those who wait look eight times in it.
      options.lease = max(lease, .milliseconds(10))
      options.cap = cap
      options.isForReading = isForReading
      options.largestFile = largestValue
      options.environment = environment
      options.environment.log = log
      return options
    }

    /// What one value may cost.
    var limits: PropertyListLimits {
      var limits = PropertyListLimits()
      limits.bytes = largestValue
      limits.expandedBytes = max(limits.expandedBytes, largestValue.multipliedCapped(by: 2))
      return limits
    }
  }
}

extension Int {
  fileprivate func multipliedCapped(by factor: Int) -> Int {
    let (product, overflow) = multipliedReportingOverflow(by: factor)
    return overflow ? .max : product
  }
}
