internal import Wormhole
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The changes that programs of this machine request from the home of a channel, in order.
///
/// The home keeps the ID of this machine's last change only. So the next change is asked when the
/// home has answered the one before, whatever happened to its reply. The change in progress is in a
/// file before it is asked, together with the last changes that were made. The next bridge asks the
/// home again first, and a program that asks again gets the missed answer.
final class ChangeQueue {
  typealias Answer = @Sendable (Carrier.ChannelAnswer) -> Void

  struct PendingChange {
    let change: Carrier.ChannelChange
    /// Nil if the program asked a bridge that has ended.
    var answer: Answer?
    /// Whether the home may have received the change.
    var wasSent: Bool
    var number = 0
    /// Whether the next bridge does not know of the change any more.
    var isForgotten = false
  }

  var waiting: [PendingChange] = []
  var current: PendingChange?
  /// Whether the home has the change in progress, and has not replied yet.
  var isAsking = false
  var retry = Instant.longAgo
  /// The latest changes and their versions, the newest change at the end.
  private(set) var made: [(operation: String, version: Int)] = []

  private let folder: BridgeFolder
  private let file: String

  private static let mostMade = 64

  private enum Key {
    static let (change, made, operation, version) = ("change", "made", "operation", "version")
  }

  /// - Parameter folder: the directory of the changes.
  init(_ folder: BridgeFolder, _ channel: String) throws(WormholeError) {
    self.folder = folder
    file = try BridgeFolder.file(of: channel)
    // The file is not synced: only a power cut damages it, and ends the programs that ask, too.
    guard let list = try folder.readIfSound(file) else { return }
    made = (list[Key.made]?.arrayValue ?? []).compactMap { one in
      guard let operation = one[Key.operation]?.stringValue,
        let version = one[Key.version]?.intValue
      else { return nil }
      return (operation, version)
    }
    current = list[Key.change].flatMap { ChannelTraffic.change($0) }.map {
      PendingChange(change: $0, answer: nil, wasSent: true)
    }
  }

  /// Adds a change, or the new request of a program for a known change.
  func add(_ change: Carrier.ChannelChange, _ answer: @escaping Answer) {
    if let known = made.last(where: { $0.operation == change.operation }) {
      return answer(Carrier.ChannelAnswer(.made, version: known.version))
    }
    if current?.change.operation == change.operation {
      current?.answer = answer
    } else if let place = waiting.firstIndex(where: { $0.change.operation == change.operation }) {
      waiting[place].answer = answer
    } else {
      waiting.append(PendingChange(change: change, answer: answer, wasSent: false))
    }
  }

  /// Begins with the next change, once the file has it.
  func begin(_ number: Int) throws(WormholeError) {
    guard current == nil, var next = waiting.first else { return }
    if !Mutants.has(.forgetChange) { try write(next.change) }
    next.number = number
    waiting.removeFirst()
    (current, retry) = (next, .longAgo)
  }

  /// Ends the change in progress with the home's answer.
  func end(_ answer: Carrier.ChannelAnswer) {
    guard let one = current else { return }
    switch answer.result {
    case .made:
      made.append((one.change.operation, answer.version))
      made.removeFirst(max(0, made.count - Self.mostMade))
    case .differs: break
    case .unreachable, .refused:
      do throws(WormholeError) { try forget() } catch { return retry = .now + .seconds(1) }
    }
    // A change that a move of the home has ended may still wait for its reply, which is no answer
    // to the next change.
    (current, isAsking) = (nil, false)
    one.answer?(answer)
  }

  /// Removes the change in progress from the file: the next bridge must not request it again.
  func forget() throws(WormholeError) {
    guard let one = current, !one.isForgotten else { return }
    try write(nil)
    current?.isForgotten = true
  }

  /// Notes the end of a request to the home; returns false if its change has ended meanwhile.
  func takesReply(to number: Int) -> Bool {
    guard current?.number == number else { return false }
    isAsking = false
    return true
  }

  /// Fails all that the home cannot have received.
  func failWaiting(_ reason: String) {
    let all = waiting
    waiting = []
    for one in all { one.answer?(Carrier.ChannelAnswer(.unreachable, reason: reason)) }
  }

  private func write(_ change: Carrier.ChannelChange?) throws(WormholeError) {
    var list: [String: PropertyListValue] = [
      Key.made: .array(
        made.map {
          [Key.operation: .string($0.operation), Key.version: .integer(Int64($0.version))]
        })
    ]
    list[Key.change] = change.map { .dictionary(ChannelTraffic.list($0)) }
    try folder.write(file, .dictionary(list), sync: false)
  }
}
