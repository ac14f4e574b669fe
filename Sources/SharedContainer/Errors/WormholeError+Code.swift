extension WormholeError {
  /// What kind of failure it is.
  ///
  /// Later versions may know more kinds, so a `switch` has a `default`. `catch` matches one:
  ///
  /// ```swift
  /// do {
  ///   try channel.put(1, ifVersion: 0)
  /// } catch WormholeError.Code.conflict {
  ///   // Somebody was faster.
  /// } catch {
  ///   throw error
  /// }
  /// ```
  public struct Code: RawRepresentable, Hashable, Sendable, CaseIterable {
    /// Its name, as the command prints it.
    public let rawValue: String

    /// The kind of a name, known or not.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// There is nothing of that name.
    public static let notFound = Code(rawValue: "notFound")
    /// The directory is no container, and will not be made one; or what was open there was removed
    /// or moved away.
    public static let notAContainer = Code(rawValue: "notAContainer")
    /// The container's format is later than this program knows.
    public static let laterFormat = Code(rawValue: "laterFormat")
    /// Owner, permissions or type of a file make it unsafe to use.
    public static let refused = Code(rawValue: "refused")
    /// The system does not let this user do it.
    public static let permissionDenied = Code(rawValue: "permissionDenied")
    /// The file system can only be read.
    public static let readOnly = Code(rawValue: "readOnly")
    /// A name that cannot be used: empty, or too long once escaped.
    public static let invalidName = Code(rawValue: "invalidName")
    /// A value that cannot be written as a property list.
    public static let invalidValue = Code(rawValue: "invalidValue")
    /// More bytes than the limit allows.
    public static let tooLarge = Code(rawValue: "tooLarge")
    /// The value is there and sound, but not of the type that was asked for.
    public static let typeMismatch = Code(rawValue: "typeMismatch")
    /// The file is damaged, and no earlier value is kept.
    public static let damaged = Code(rawValue: "damaged")
    /// The disk, the quota, or a queue is full.
    ///
    /// Nothing was changed.
    public static let full = Code(rawValue: "full")
    /// The process or the system has run out of descriptors, watches, threads or memory.
    public static let exhausted = Code(rawValue: "exhausted")
    /// The value changed meanwhile, or exists already.
    ///
    /// Read it and try again.
    public static let conflict = Code(rawValue: "conflict")
    /// Others took the lock over, because this process took too long.
    ///
    /// Nothing was changed.
    public static let superseded = Code(rawValue: "superseded")
    /// A living process has joined under this name.
    public static let nameTaken = Code(rawValue: "nameTaken")
    /// The member has left, or what it had was taken from it.
    public static let notJoined = Code(rawValue: "notJoined")
    /// The process is a copy, as `fork` makes it, of the one that opened the container.
    ///
    /// What it has inherited is that one's: open the container anew.
    public static let forked = Code(rawValue: "forked")
    /// A lock of this container was asked for inside an update of this container.
    public static let nested = Code(rawValue: "nested")
    /// It would have to wait for somebody who waits for the caller.
    public static let deadlock = Code(rawValue: "deadlock")
    /// Whoever is in the way does not run: it is stopped.
    public static let stopped = Code(rawValue: "stopped")
    /// The deadline passed.
    ///
    /// Nothing was changed.
    public static let timedOut = Code(rawValue: "timedOut")
    /// The caller cancelled it.
    ///
    /// Nothing was changed.
    public static let cancelled = Code(rawValue: "cancelled")
    /// A message did not arrive: the receiver has given it up.
    public static let undelivered = Code(rawValue: "undelivered")
    /// The peer does not run, or has ended or left before it answered.
    public static let unreachable = Code(rawValue: "unreachable")
    /// The peer does not answer that, or says that it cannot.
    public static let rejected = Code(rawValue: "rejected")
    /// It was done and everybody sees it, but a power cut may undo it.
    public static let notDurable = Code(rawValue: "notDurable")
    /// Of several changes in one call, some were made and some not; the reason says which.
    public static let partlyDone = Code(rawValue: "partlyDone")
    /// The system reported an error that says nothing more about what to do.
    public static let system = Code(rawValue: "system")

    /// Those that this version knows.
    public static let allCases: [Code] = [
      .notFound, .notAContainer, .laterFormat, .refused, .permissionDenied, .readOnly, .invalidName,
      .invalidValue, .tooLarge, .typeMismatch, .damaged, .full, .exhausted, .conflict, .superseded,
      .nameTaken, .notJoined, .forked, .nested, .deadlock, .stopped, .timedOut, .cancelled,
      .undelivered, .unreachable,
      .rejected, .notDurable, .partlyDone, .system,
    ]
  }
}

extension WormholeError.Code: CustomStringConvertible {
  /// Its name.
  public var description: String { rawValue }

  /// Whether an error is one of this kind: `catch WormholeError.Code.conflict`.
  public static func ~= (code: WormholeError.Code, error: any Error) -> Bool {
    (error as? WormholeError)?.code == code
  }
}
