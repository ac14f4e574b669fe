public import Foundation
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholeDropIns
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A messenger that stores each identifier's message in a channel of the group's container.
///
/// `<identifier>.archive`, the name of MMWormhole's file, is a symbolic link to the channel's
/// value, and exists as long as the message exists.
///
/// A subclass may change single methods; the others continue to use the channels.
open class MMWormholeFileTransiting: NSObject, MMWormholeTransiting {
  // All mutable state is behind monitors.

  private let group: String?
  private let directory: String?
  private let opened = Monitor<OpenMessenger?>(nil)
  private let files = Monitor(FileManager.default)
  /// Whether the messenger writes to channels; a messenger of a watch session does not.
  var watchesChannels: Bool { true }
  /// Nil if accesses are not coordinated.
  var coordinator: Coordinator? { nil }
  /// The channel of a message, by identifier: a stored channel has its files open.
  ///
  /// By the identifier's bytes, because strings that look alike may be different names.
  private let kept = Monitor<[[UInt8]: Place]>([:])
  /// The maximum number of stored channels.
  private static let mostKept = 256

  private struct OpenMessenger {
    let container: SharedContainer
    let messages: MessagePlace
  }

  private struct Place {
    let container: SharedContainer
    let channel: Channel<PropertyListValue>
    let alias: Alias
    let source: MessageVersion.ChannelIdentity
  }

  /// Creates a messenger for a group.
  ///
  /// If the group's container cannot be opened, ``DropInLog`` contains the reason, and each later
  /// call tries again.
  ///
  /// - Parameter directory: the directory of the messages below the group's directory; slashes
  ///   separate the names of directories.
  public init(
    applicationGroupIdentifier identifier: String?, optionalDirectory directory: String? = nil
  ) {
    (group, self.directory) = (identifier, directory)
    super.init()
    if watchesChannels { attempt { try open() } }
  }

  /// Returns the container and the place of the messages in it.
  ///
  /// - Parameter creates: whether a missing container is created.
  @discardableResult
  private func open(creates: Bool = true) throws(WormholeError) -> OpenMessenger {
    if let opened = opened.withLock({ $0 }) { return opened }
    let new = OpenMessenger(
      container: try SharedOpenings.group(group, creates: creates),
      messages: try MessagePlace(directory))
    opened.withLock { $0 = new }
    return new
  }

  /// The file manager, for methods of a subclass; the module itself does not use it.
  open var fileManager: FileManager {
    get { files.withLock { $0 } }
    set { files.withLock { $0 = newValue } }
  }

  /// Returns the directory of the links to messages.
  open func messagePassingDirectoryPath() -> String? {
    guard let (container, messages) = attempt({ try open() }).map({ ($0.container, $0.messages) })
    else { return nil }
    let parent = container.directory.parts(between: "/").dropLast().map { "/" + $0 }.joined()
    return ([parent] + messages.names).joined(separator: "/")
  }

  /// Returns the path of the link to a message; nil without an identifier, or for an empty
  /// identifier.
  ///
  /// A character that a file name cannot contain is written as `%` and two digits.
  open func filePath(forIdentifier identifier: String?) -> String? {
    guard let identifier, !identifier.isEmpty else { return nil }
    return try? alias(identifier, open()).location
  }

  // MARK: As any messenger

  /// Passes a message; returns false if it could not be written, which ``DropInLog`` reports.
  open func writeMessageObject(
    _ messageObject: (any NSCoding)?, forIdentifier identifier: String
  ) -> Bool {
    attempt { try pass(messageObject, identifier) { { _ in } } } != nil
  }

  /// Returns the message of an identifier; nil if the message is missing or unreadable.
  open func messageObject(forIdentifier identifier: String?) -> (any NSCoding)? {
    guard let identifier else { return nil }
    return StoredMessage.archivable(attempt { try message(identifier) } ?? nil)
  }

  /// Removes the message of an identifier.
  open func deleteContent(forIdentifier identifier: String?) {
    guard let identifier else { return }
    attempt { try clear(identifier) }
  }

  /// Removes all messages.
  open func deleteContentForAllMessages() { attempt { try clearAll { _, _ in } } }

  // MARK: Implementation

  /// - Parameter failure: makes the closure that receives later failures, if there can be some.
  func pass(
    _ object: (any NSCoding)?, _ identifier: String,
    failure: () -> @Sendable (any Error) -> Void
  ) throws {
    let stored = try StoredMessage.store(object, identifier)
    _ = try inContainer { opened in
      let place = try resolve(identifier, opened)
      return try access(.writing(place.alias.location), creates: true) {
        try place.channel.put(stored, alias: place.alias)
      }
    }
  }

  func message(_ identifier: String) throws -> Any? {
    try inContainer(isDone: { $0 != nil }, otherwise: { nil }) { opened in
      let place = try resolve(identifier, opened)
      return try access(.reading(place.alias.location), creates: false) {
        try StoredMessage.object(place.channel.value, identifier)
      }
    }
  }

  /// Returns the version up to which messages are removed; nil if messages have no version, or if
  /// the group has no container, and so no message.
  func clear(_ identifier: String) throws -> MessageVersion? {
    try inContainer(isDone: { _ in false }, otherwise: { nil }) { opened -> MessageVersion? in
      let place = try resolve(identifier, opened)
      let number = try access(.writing(place.alias.location), creates: false) {
        try place.channel.clear(alias: place.alias)
      }
      return MessageVersion(source: place.source, number: number)
    }
  }

  /// Runs a body, and once more in the group's next container if a program has removed the one that
  /// is open.
  ///
  /// Only a write always fails in a removed container: a passed message costs no further look.
  ///
  /// - Parameters:
  ///   - isDone: whether a result shows that the container is still there.
  ///   - otherwise: returns the result of a read or a clear while the group has no container. Both
  ///     make none: the removal of the group's directory may be in progress, and would fail.
  private func inContainer<Result>(
    isDone: (Result) -> Bool = { _ in true }, otherwise: (() -> Result)? = nil,
    _ body: (OpenMessenger) throws -> Result
  ) throws -> Result {
    do {
      let before = try open(creates: otherwise == nil)
      do {
        let result = try body(before)
        if isDone(result) || before.container.storage.isInPlace { return result }
      } catch {
        // A coordinated access may find that a directory is missing, any other that the container
        // is.
        if before.container.storage.isInPlace { throw error }
      }
      if let otherwise, !SharedOpenings.hasContainer(group) { return otherwise() }
      leave(before.container)
      return try body(open(creates: otherwise == nil))
    } catch {
      // Another program may remove the next container as well. A name that cannot be used has no
      // container either, and is an error.
      guard let otherwise, (error as? WormholeError)?.code != .invalidName,
        !SharedOpenings.hasContainer(group)
      else { throw error }
      return otherwise()
    }
  }

  /// Lets the next call open the group's next container.
  private func leave(_ container: SharedContainer) {
    opened.withLock { if $0?.container === container { $0 = nil } }
    // Channels of the removed container would keep its files open.
    kept.withLock { $0 = [:] }
  }

  /// Runs a body, in an access to the link of its message if accesses are coordinated.
  ///
  /// - Parameter creates: whether the access makes a missing container, which orders the accesses
  ///   to the group's files.
  private func access<Result>(
    _ intent: Coordinator.Intent, creates: Bool, _ body: () throws -> Result
  ) throws -> Result {
    guard let coordinator else { return try body() }
    return try coordinator.access(
      [intent], within: nil, takeOverAfter: nil, announced: coordinator.announce(),
      creates: creates
    ) { _ in try body() }
  }

  /// - Parameter cleared: is called with each identifier and the result of ``clear(_:)`` for it.
  func clearAll(_ cleared: (String, MessageVersion?) -> Void) throws {
    var failure: (any Error)?
    let names = try inContainer(isDone: { !$0.isEmpty }, otherwise: { [] }) { opened -> [String] in
      try opened.container.channels(prefix: opened.messages.prefix)
        .map { String($0.dropFirst(opened.messages.prefix.count)) }
    }
    for identifier in names {
      // An identifier with a slash belongs to a directory below this directory.
      guard let identifier = EscapedName.unescape(identifier) else { continue }
      do {
        cleared(identifier, try clear(identifier))
      } catch {
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
  }

  /// - Parameters:
  ///   - creates: whether a missing container is created.
  ///   - handler: receives each message and its version; without a message if the message was
  ///     removed or is unreadable, which `failure` reports.
  func watch(
    _ identifier: String, creates: Bool,
    _ handler: @escaping @Sendable (UncheckedBox<Any?>?, MessageVersion) -> Void,
    failure: @escaping @Sendable (any Error) -> Void
  ) throws(WormholeError) -> Subscription {
    let container = try open(creates: creates).container
    if !container.storage.isInPlace { leave(container) }
    let place = try resolve(identifier, open(creates: creates))
    let source = place.source
    return try place.channel.watch(initial: false) { snapshot in
      let version = MessageVersion(source: source, number: snapshot.version)
      // A clear removes a message, and is not itself a message.
      guard let value = snapshot.value else { return handler(nil, version) }
      do {
        handler(UncheckedBox<Any?>(try StoredMessage.object(value, identifier)), version)
      } catch {
        handler(nil, version)
        failure(error)
      }
    } failure: { error in
      failure(error)
    }
  }

  private func resolve(
    _ identifier: String, _ opened: OpenMessenger
  ) throws(WormholeError) -> Place {
    let key = Array(identifier.utf8)
    // Another thread may have kept a channel of a removed container.
    if let place = kept.withLock({ $0[key] }), place.container === opened.container {
      return place
    }
    let name = try opened.messages.name(of: identifier)
    let place = Place(
      container: opened.container, channel: opened.container.channel(name),
      alias: try alias(identifier, opened),
      source: MessageVersion.ChannelIdentity(opened.container.storage, name: name))
    kept.withLock { kept in
      // Programs use a few identifiers; a program that invents new identifiers all the time fills
      // no memory.
      if kept.count >= Self.mostKept { kept = [:] }
      kept[key] = place
    }
    return place
  }

  /// Runs a body for calls that cannot throw.
  @discardableResult
  func attempt<Result>(_ body: () throws -> Result) -> Result? { DropInLog.attempt(body) }

  private func alias(
    _ identifier: String, _ opened: OpenMessenger
  ) throws(WormholeError) -> Alias {
    let escaped = try Container.escape(identifier)
    return try Alias(
      opened.messages.names + [escaped + ".archive"],
      channel: opened.messages.prefix + escaped, in: opened.container)
  }
}

extension MMWormholeTransiting {
  /// The messenger, if it is one of the module's classes, whose functions report failures.
  ///
  /// A program's subclass may override the public methods, which therefore must be called.
  var builtIn: MMWormholeFileTransiting? {
    let type: any AnyObject.Type = type(of: self as AnyObject)
    guard
      type == MMWormholeFileTransiting.self || type == MMWormholeCoordinatedFileTransiting.self
        || type == MMWormholeSessionContextTransiting.self
        || type == MMWormholeSessionMessageTransiting.self
        || type == MMWormholeSessionFileTransiting.self
    else { return nil }
    return self as? MMWormholeFileTransiting
  }
}

/// As ``MMWormholeFileTransiting``, but coordinated with other programs' accesses to the links.
open class MMWormholeCoordinatedFileTransiting: MMWormholeFileTransiting {
  private let own = Coordinator()
  override var coordinator: Coordinator? { own }
}
