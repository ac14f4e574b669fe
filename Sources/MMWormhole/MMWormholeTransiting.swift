public import Foundation

/// A transport of messages from one program to another.
///
/// A program may implement its own, and set it as ``MMWormhole/wormholeMessenger``: then the
/// program is responsible for the promises of its calls. The object is called on the threads that
/// use the wormhole, and, with a listener, on threads of the module.
@preconcurrency
public protocol MMWormholeTransiting: AnyObject {
  /// Writes a message; returns true if listeners must be notified.
  func writeMessageObject(_ messageObject: (any NSCoding)?, forIdentifier identifier: String)
    -> Bool

  /// Reads a message; nil if the identifier has no message.
  func messageObject(forIdentifier identifier: String?) -> (any NSCoding)?

  /// Removes a message.
  func deleteContent(forIdentifier identifier: String?)

  /// Removes all messages.
  func deleteContentForAllMessages()
}

/// The receiver of messages that a transport has received.
@preconcurrency
public protocol MMWormholeTransitingDelegate: AnyObject {
  /// Calls the listener of an identifier.
  func notifyListenerForMessage(withIdentifier identifier: String?, message: (any NSCoding)?)
}

/// The transport of messages from one program to another.
public enum MMWormholeTransitingType: Int, Sendable {
  /// Through files of the group's container.
  case file
  /// As ``file``, but coordinated with other programs' accesses to `<identifier>.archive`.
  ///
  /// Files that appear whole do not need coordination; a program that reads in several steps may.
  case coordinatedFile
  /// In the application context of a watch session: the last message of each identifier.
  case sessionContext
  /// As messages of a watch session, to the running peer.
  case sessionMessage
  /// By a watch session, so that all messages arrive, even if a process dies in between.
  case sessionFile

  func messenger(group: String?, directory: String?) -> any MMWormholeTransiting {
    switch self {
    case .file:
      MMWormholeFileTransiting(applicationGroupIdentifier: group, optionalDirectory: directory)
    case .coordinatedFile:
      MMWormholeCoordinatedFileTransiting(
        applicationGroupIdentifier: group, optionalDirectory: directory)
    case .sessionContext: MMWormholeSessionContextTransiting()
    case .sessionMessage: MMWormholeSessionMessageTransiting()
    case .sessionFile: MMWormholeSessionFileTransiting()
    }
  }
}
