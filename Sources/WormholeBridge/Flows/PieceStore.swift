internal import Wormhole
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The pieces that have arrived from a machine, until their messages arrive: one file for each part
/// of a message, beside the staged messages.
///
/// A piece that arrives twice is written twice, to the same place. A piece behind a missing one is
/// dropped: the file stays too short, and so the message is seen to be incomplete.
final class PieceStore {
  private let folder: BridgeFolder
  /// The files that wait for their messages.
  private var waiting: Set<String>
  /// The files that were written to and not synced.
  private var unsynced: Set<String> = []

  /// How many parts may wait: two of each large message of a sender, which has few under way.
  static let most = 2 * OutFlow.mostTransfers

  init(_ folder: BridgeFolder) throws(WormholeError) {
    self.folder = folder
    waiting = Set(
      try folder.names().filter {
        MessageName($0) != nil || MessageName.messages(ofFile: $0) != nil
      })
  }

  private func file(_ part: MessagePart, _ name: MessageName) -> String {
    part == .file ? name.fileName : name.text
  }

  func add(_ piece: FlowPiece, of name: MessageName, _ bytes: [UInt8]) throws(WormholeError) {
    let file = file(piece.part, name)
    guard bytes.count == piece.count, waiting.contains(file) || waiting.count < Self.most,
      try folder.write(bytes, at: piece.offset, of: file)
    else { return }
    waiting.insert(file)
    unsynced.insert(file)
  }

  /// A file without bytes has no piece.
  func addEmptyFile(of name: MessageName) throws(WormholeError) {
    let file = file(.file, name)
    guard try folder.write([], at: 0, of: file) else { return }
    waiting.insert(file)
    unsynced.insert(file)
  }

  /// The file of a message; nil if no piece of it has arrived.
  func attachment(of name: MessageName) -> String? {
    let file = file(.file, name)
    return waiting.contains(file) ? file : nil
  }

  /// The message that has arrived in pieces; nil if it is incomplete.
  func message(_ name: MessageName) throws(WormholeError) -> [UInt8]? {
    let file = file(.message, name)
    return waiting.contains(file) ? try folder.bytes(of: file) : nil
  }

  /// The message has arrived: returns the files of its pieces, which wait no longer.
  func end(_ name: MessageName) -> [String] {
    [file(.file, name), file(.message, name)].filter { waiting.remove($0) != nil }
  }

  /// Removes the pieces of a message that does not follow.
  ///
  /// They are removed at once, and not behind the cursor: the same message may begin again in the
  /// same batch. Repeating the call changes nothing.
  func remove(_ name: MessageName) throws(WormholeError) {
    for file in end(name) {
      unsynced.remove(file)
      try folder.remove(file)
    }
  }

  /// Makes everything durable that was added; the names are durable with the folder.
  ///
  /// - Returns: whether anything was added.
  func sync() throws(WormholeError) -> Bool {
    guard !unsynced.isEmpty else { return false }
    for file in unsynced { try folder.sync(file) }
    unsynced = []
    return true
  }

  /// The sender has begun another flow, in which everything comes again.
  func removeAll() throws(WormholeError) {
    for file in waiting { try folder.remove(file) }
    (waiting, unsynced) = ([], [])
  }
}
