internal import DropIns
internal import Syscalls
public import Wormhole

/// Who this process is, and what holds for its session.
extension WCSession {
  /// The side of a pairing that a process is.
  public enum Role: String, Hashable, Sendable, CaseIterable {
    /// The phone's app.
    case phone
    /// The watch's app.
    case watch

    var other: Role { self == .phone ? .watch : .phone }
  }

  /// What devices have fixed.
  public struct Settings: Sendable {
    /// How many bytes a message may have.
    public var largestMessage = 65_536
    /// How many bytes a user info may have, and the metadata of a file.
    public var largestUserInfo = 65_536
    /// How many bytes an application context may have.
    public var largestContext = 262_144
    /// How long a message may take, its reply counted in.
    public var messageTimeout = Duration.seconds(60)
    /// For how long a transfer may wait to be received; nil for ever, as on devices.
    public var transferTimeout: Duration?
    /// How many complication transfers there are a day.
    public var complicationBudget = 50
    /// What a transfer and a context survive once the call has returned: with
    /// ``Durability/process`` they cost a tenth of the time, and a power cut may lose them.
    public var durability = Durability.power
    /// How often a transfer is handed to a delegate that ends while it handles it, 60 at most;
    /// devices go on for ever.
    public var attempts = 60

    /// What is known of devices.
    public init() {}
  }

  /// Who this process is.
  struct Part: Sendable {
    var role: Role
    var place: Place
    /// The watch that a process with the role of one is.
    var watch: String
    var settings: Settings
  }

  /// Where both sides meet.
  package enum Place: Hashable, Sendable {
    case directory(String)
    case group(String)
  }

  private static let given = Monitor<Part?>(nil)

  /// Says which side this process is, in place of what the environment says; before the session is
  /// activated.
  ///
  /// - Parameters:
  ///   - role: phone or watch.
  ///   - container: the path of the container in which both sides meet.
  ///   - watch: the name of the watch, if there are several; by default what `WORMHOLE_WATCH`
  ///     says, or `watch`.
  ///   - settings: limits and the like.
  public static func configure(
    _ role: Role, container: String, watch: String? = nil, settings: Settings = Settings()
  ) {
    configure(role, .directory(container), watch, settings)
  }

  /// Says which side this process is, and the group in whose container both sides meet.
  ///
  /// As ``configure(_:container:watch:settings:)``.
  public static func configure(
    _ role: Role, group: String, watch: String? = nil, settings: Settings = Settings()
  ) {
    configure(role, .group(group), watch, settings)
  }

  private static func configure(
    _ role: Role, _ place: Place, _ watch: String?, _ settings: Settings
  ) {
    let part = Part(role: role, place: place, watch: watch ?? usualWatch, settings: settings)
    given.withLock { $0 = part }
  }

  /// What was said, or what the environment says; throws why this process is neither side.
  static func part() throws(WCError) -> Part {
    if let given = given.withLock({ $0 }) { return given }
    guard let word = setting("WORMHOLE_ROLE") else { throw WCError(.sessionNotSupported) }
    guard let role = Role(rawValue: word) else {
      throw WCError(.sessionNotSupported, "'\(word)' in WORMHOLE_ROLE is no role")
    }
    let place: Place
    switch (setting("WORMHOLE_CONTAINER"), setting("WORMHOLE_GROUP")) {
    case (let path?, nil): place = .directory(path)
    case (nil, let group?): place = .group(group)
    case (nil, nil): throw WCError(.sessionNotSupported, "no container is named")
    case (_?, _?):
      throw WCError(.sessionNotSupported, "both WORMHOLE_CONTAINER and WORMHOLE_GROUP are set")
    }
    return Part(role: role, place: place, watch: usualWatch, settings: Settings())
  }

  private static var usualWatch: String { setting("WORMHOLE_WATCH") ?? Pairing.State.usualWatch }

  private static func setting(_ name: String) -> String? {
    guard let value = Processes.environment(name), !value.isEmpty else { return nil }
    return value
  }
}

extension WCSession.Part {
  /// Opens the container; each session has an opening of its own, as each process has.
  func open() throws(WormholeError) -> Wormhole {
    var options = Wormhole.Options()
    options.log = { DropInLog.tell($0) }
    options.mail.attempts = settings.attempts
    switch place {
    case .directory(let path): return try Wormhole(directory: path, options: options)
    case .group(let group): return try Wormhole(group: group, options: options)
    }
  }
}
