public import Wormhole
internal import WormholeDropIns
internal import WormholeSyscalls

/// The role of this process, and the settings of its session.
extension WCSession {
  /// The role of a process in a pairing.
  public enum Role: String, Hashable, Sendable, CaseIterable {
    /// The phone's app.
    case phone
    /// The watch's app.
    case watch

    var other: Role { self == .phone ? .watch : .phone }
  }

  /// Limits that are fixed on devices.
  public struct Settings: Sendable {
    /// The maximum number of bytes of a message.
    public var largestMessage = 65_536
    /// The maximum number of bytes of a user info, and of the metadata of a file.
    public var largestUserInfo = 65_536
    /// The maximum number of bytes of an application context.
    public var largestContext = 262_144
    /// The time limit for a message, including its reply.
    public var messageTimeout = Duration.seconds(60)
    /// The time limit until a transfer is received; nil for no limit, as on devices.
    public var transferTimeout: Duration?
    /// The number of complication transfers per day.
    public var complicationBudget = Self.complicationsOfDevices
    /// The failure that a transfer and a context survive after the call has returned.
    ///
    /// A session stands in for a device in tests, where no power cut is to be survived. With
    /// ``Durability/power`` transfers take ten times as long.
    public var durability = Durability.process
    /// How often a transfer is delivered to a delegate whose process ends while handling it, 60
    /// times at most; devices redeliver without limit.
    public var attempts = 60

    /// Creates settings with the limits that are known of devices.
    public init() {}

    /// Creates the settings that the environment states, with the usual values for the rest.
    ///
    /// - Parameter tell: receives a sentence for each value that cannot be used.
    package init(variable: (String) -> String?, tell: (String) -> Void) {
      self.init()
      switch variable("WORMHOLE_DURABILITY") {
      case nil: break
      case "process": durability = .process
      case "power": durability = .power
      case let word?:
        tell(
          "cannot set the durability of transfers: WORMHOLE_DURABILITY is '\(word)', neither "
            + "'process' nor 'power'; the session uses 'process'")
      }
      guard let word = variable("WORMHOLE_MESSAGE_TIMEOUT") else { return }
      if let seconds = Double(word), (0.001...1_000_000).contains(seconds) {
        messageTimeout = .milliseconds(Int64(seconds * 1000))
      } else {
        tell(
          "cannot set the time limit of messages: WORMHOLE_MESSAGE_TIMEOUT is '\(word)', not a "
            + "number of seconds; the session uses 60")
      }
    }
  }

  /// The configuration of this process: its role, container, watch and settings.
  struct SessionPart: Sendable {
    var role: Role
    var place: ContainerPlace
    /// The name of the watch, for a process with the role `watch`.
    var watch: String
    var settings: Settings
  }

  /// The location of the container in which both sides meet.
  package enum ContainerPlace: Hashable, Sendable {
    case directory(String)
    case group(String)
  }

  private static let given = Monitor<SessionPart?>(nil)

  /// Sets the role of this process, instead of the environment's; call it before the session is
  /// activated.
  ///
  /// - Parameters:
  ///   - role: phone or watch.
  ///   - container: the path of the container in which both sides meet.
  ///   - watch: the name of the watch, if there are several; by default the value of
  ///     `WORMHOLE_WATCH`, or `watch`.
  ///   - settings: byte limits, time limits and the durability.
  public static func configure(
    _ role: Role, container: String, watch: String? = nil, settings: Settings = Settings()
  ) {
    configure(role, .directory(container), watch, settings)
  }

  /// Sets the role of this process, and the group in whose container both sides meet.
  ///
  /// The same as ``configure(_:container:watch:settings:)`` in all other respects.
  public static func configure(
    _ role: Role, group: String, watch: String? = nil, settings: Settings = Settings()
  ) {
    configure(role, .group(group), watch, settings)
  }

  private static func configure(
    _ role: Role, _ place: ContainerPlace, _ watch: String?, _ settings: Settings
  ) {
    let part = SessionPart(role: role, place: place, watch: watch ?? usualWatch, settings: settings)
    given.withLock { $0 = part }
  }

  /// Returns the configuration from the program, or from the environment; throws the reason why
  /// this process has neither role.
  ///
  /// The log gets the reason, once in a process: most apps ask only whether a session is supported.
  static func part() throws(WCError) -> SessionPart {
    if let given = given.withLock({ $0 }) { return given }
    do throws(WCError) {
      return try partOfEnvironment()
    } catch {
      tellOnce(error.localizedDescription)
      throw error
    }
  }

  private static func partOfEnvironment() throws(WCError) -> SessionPart {
    guard let word = setting("WORMHOLE_ROLE") else {
      throw WCError(.sessionNotSupported, "WORMHOLE_ROLE is not set")
    }
    guard let role = Role(rawValue: word) else {
      throw WCError(.sessionNotSupported, "WORMHOLE_ROLE is '\(word)', neither 'phone' nor 'watch'")
    }
    let place: ContainerPlace
    switch (setting("WORMHOLE_CONTAINER"), setting("WORMHOLE_GROUP")) {
    case (let path?, nil): place = .directory(path)
    case (nil, let group?): place = .group(group)
    case (nil, nil):
      throw WCError(.sessionNotSupported, "neither WORMHOLE_CONTAINER nor WORMHOLE_GROUP is set")
    case (_?, _?):
      throw WCError(.sessionNotSupported, "both WORMHOLE_CONTAINER and WORMHOLE_GROUP are set")
    }
    let settings = Settings(variable: setting, tell: tellOnce)
    return SessionPart(role: role, place: place, watch: usualWatch, settings: settings)
  }

  private static let told = Monitor<Set<String>>([])

  private static func tellOnce(_ text: String) {
    if told.withLock({ $0.insert(text).inserted }) { DropInLog.tell(.error, text) }
  }

  private static var usualWatch: String { setting("WORMHOLE_WATCH") ?? Pairing.State.usualWatch }

  private static func setting(_ name: String) -> String? {
    guard let value = Processes.environment(name), !value.isEmpty else { return nil }
    return value
  }
}

extension WCSession.SessionPart {
  /// Opens the container.
  ///
  /// Each session has its own instance of the container, as each process has.
  func open() throws(WormholeError) -> SharedContainer {
    var options = Options()
    options.log = { DropInLog.tell($0) }
    options.mailbox.attempts = settings.attempts
    switch place {
    case .directory(let path): return try SharedContainer(directory: path, options: options)
    case .group(let group): return try SharedContainer(group: group, options: options)
    }
  }
}
