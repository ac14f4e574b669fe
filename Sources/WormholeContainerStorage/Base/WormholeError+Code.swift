extension WormholeError {
  /// The kind of a failure.
  ///
  /// Later versions may have more codes, so a `switch` needs a `default`. `catch` matches a code:
  ///
  /// ```swift
  /// do {
  ///   try channel.put(1, ifVersion: 0)
  /// } catch WormholeError.Code.conflict {
  ///   // Another writer was faster.
  /// } catch {
  ///   throw error
  /// }
  /// ```
  public struct Code: RawRepresentable, Hashable, Sendable, CaseIterable {
    /// The name, as the command prints it.
    public let rawValue: String

    /// The code of a name, known or not.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// No object has this name.
    public static let notFound = Code(rawValue: "notFound")
    /// The directory is not a container, and is not made into one; or the open container was
    /// removed or moved away.
    public static let notAContainer = Code(rawValue: "notAContainer")
    /// The container's format is later than this program knows.
    public static let laterFormat = Code(rawValue: "laterFormat")
    /// Owner, permissions or type of a file make it unsafe to use.
    public static let refused = Code(rawValue: "refused")
    /// The system denies this user the operation.
    public static let permissionDenied = Code(rawValue: "permissionDenied")
    /// The file system is read-only.
    public static let readOnly = Code(rawValue: "readOnly")
    /// The name cannot be used: it is empty, or too long once escaped; or a kind is too long or
    /// contains a zero byte.
    public static let invalidName = Code(rawValue: "invalidName")
    /// The value cannot be written as a property list.
    public static let invalidValue = Code(rawValue: "invalidValue")
    /// The value has more bytes than the limit allows.
    public static let tooLarge = Code(rawValue: "tooLarge")
    /// The value is sound, but does not have the requested type.
    public static let typeMismatch = Code(rawValue: "typeMismatch")
    /// The file is damaged, and there is no previous value.
    public static let damaged = Code(rawValue: "damaged")
    /// The disk, the quota, or a queue is full.
    ///
    /// Nothing was changed.
    public static let full = Code(rawValue: "full")
    /// The process or the system has run out of descriptors, watches, threads or memory.
    public static let exhausted = Code(rawValue: "exhausted")
    /// The value was changed in the meantime, or exists already.
    ///
    /// Read the value and try again.
    public static let conflict = Code(rawValue: "conflict")
    /// Another process took the lock over, because this process took too long.
    ///
    /// Nothing was changed.
    public static let superseded = Code(rawValue: "superseded")
    /// A living process has joined under this name.
    public static let nameTaken = Code(rawValue: "nameTaken")
    /// The member has left, or its claimed message now belongs to another incarnation.
    public static let notJoined = Code(rawValue: "notJoined")
    /// The process is a child, made by `fork`, of the process that opened the container.
    ///
    /// Only the parent can use the inherited instance: open the container again.
    public static let forked = Code(rawValue: "forked")
    /// An update of this container requested another lock of the same container.
    public static let nested = Code(rawValue: "nested")
    /// The call would wait for a process that waits for the caller.
    public static let deadlock = Code(rawValue: "deadlock")
    /// The conflicting process does not run: it is suspended.
    public static let stopped = Code(rawValue: "stopped")
    /// The deadline passed.
    ///
    /// Nothing was changed; only a change of a copied channel may have been made on the channel's
    /// home machine, and the reason says so.
    public static let timedOut = Code(rawValue: "timedOut")
    /// The caller cancelled the operation.
    ///
    /// Nothing was changed.
    public static let cancelled = Code(rawValue: "cancelled")
    /// A message was not delivered: the receiver has dead-lettered it.
    public static let deadLettered = Code(rawValue: "deadLettered")
    /// The peer does not run, or has ended or left before its reply.
    ///
    /// Or the home of a copied channel cannot be reached, and nothing was changed.
    public static let unreachable = Code(rawValue: "unreachable")
    /// The operation is not possible for a copied channel, whose home is another machine.
    public static let unsupported = Code(rawValue: "unsupported")
    /// The peer has no handler for the request, or the handler rejected it.
    public static let rejected = Code(rawValue: "rejected")
    /// The change is complete and visible, but a power cut may undo it.
    public static let notDurable = Code(rawValue: "notDurable")
    /// Some changes of one call were made and some not; the reason names them.
    public static let partlyDone = Code(rawValue: "partlyDone")
    /// The system reported an error without a known remedy.
    public static let system = Code(rawValue: "system")

    /// The codes known to this version.
    public static let allCases: [Code] = [
      .notFound, .notAContainer, .laterFormat, .refused, .permissionDenied, .readOnly, .invalidName,
      .invalidValue, .tooLarge, .typeMismatch, .damaged, .full, .exhausted, .conflict, .superseded,
      .nameTaken, .notJoined, .forked, .nested, .deadlock, .stopped, .timedOut, .cancelled,
      .deadLettered, .unreachable, .unsupported,
      .rejected, .notDurable, .partlyDone, .system,
    ]
  }
}

extension WormholeError.Code: CustomStringConvertible {
  /// The name of the code.
  public var description: String { rawValue }

  /// Whether an error has this code: `catch WormholeError.Code.conflict`.
  public static func ~= (code: WormholeError.Code, error: any Error) -> Bool {
    (error as? WormholeError)?.code == code
  }
}

extension CancellationError {
  /// Whether an error is a cancellation, of this library too: `catch CancellationError()`.
  ///
  /// `catch is CancellationError` asks for the type, and no library can make that match.
  public static func ~= (pattern: CancellationError, error: any Error) -> Bool {
    error.isCancellation
  }
}

extension Error {
  /// Whether the error states that the caller cancelled the operation: a `CancellationError`, or a
  /// ``WormholeError`` of code `cancelled`.
  public var isCancellation: Bool {
    self is CancellationError || (self as? WormholeError)?.code == .cancelled
  }
}
