internal import DropIns
public import Foundation
internal import Wormhole

/// How messages get from one program to another.
///
/// A program may have its own, and set it as ``MMWormhole/wormholeMessenger``: then it answers for
/// what its calls promise.
@preconcurrency
public protocol MMWormholeTransiting: AnyObject, Sendable {
  /// Writes a message; true if listeners are to be told.
  func writeMessageObject(_ messageObject: (any NSCoding)?, forIdentifier identifier: String?)
    -> Bool

  /// Reads a message; nil if there is none.
  func messageObject(forIdentifier identifier: String?) -> Any?

  /// Removes a message.
  func deleteContent(forIdentifier identifier: String?)

  /// Removes all messages.
  func deleteContentForAllMessages()
}

/// How messages get from one program to another.
public enum MMWormholeTransitingType: Int, Sendable {
  /// Through files of the group's container.
  case file
  /// As ``file``, taking turns with whoever coordinates accesses to `<identifier>.archive`.
  ///
  /// Files that appear whole do not need it; other programs that look at them in several steps may.
  case coordinatedFile
  /// In the application context of a watch session: of each identifier the last.
  case sessionContext
  /// As messages of a watch session, to whoever runs now.
  case sessionMessage
  /// So that all arrive, whoever dies meanwhile, by a watch session.
  case sessionFile

  func messenger(group: String, directory: String?) -> (any MMWormholeTransiting)? {
    do throws(WormholeError) {
      switch self {
      case .file, .coordinatedFile:
        return try MMWormholeFileTransiting(
          group: group, directory: directory, isCoordinated: self == .coordinatedFile)
      case .sessionContext: return MMWormholeSessionContextTransiting()
      case .sessionMessage: return MMWormholeSessionMessageTransiting()
      case .sessionFile: return MMWormholeSessionFileTransiting()
      }
    } catch {
      DropInLog.tell(.error, error)
      return nil
    }
  }
}
