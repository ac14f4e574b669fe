internal import SharedContainer
internal import Syscalls

/// How much room inboxes have, as far as this process knows.
///
/// To count is to list, which costs more than to send. So an inbox is counted, and half of what was
/// free may then be sent before it is counted again. One sender never exceeds the bounds; several
/// at the same time may, by what they send between two counts.
final class Quotas: Sendable {
  private struct Room {
    var files: Int
    var bytes: Int
  }

  private let rooms = Monitor<[String: Room]>([:])

  /// Waits for room, or throws.
  func admit(
    _ bytes: Int, to home: MemberDirectory, _ whenFull: Wormhole.SendOptions.WhenFull,
    _ options: Wormhole.MailOptions, _ time: MailTime
  ) throws(WormholeError) {
    guard !take(bytes, home) else { return }
    var waiting: Waiting?
    while true {
      let free = try room(in: home, options)
      // Whoever had to wait goes on when there is room for some time, or it would count each time.
      let reserve = waiting == nil ? 1 : max(1, options.largestQueue / 8)
      if free.files >= reserve, free.bytes >= bytes {
        rooms.withLock {
          $0[home.name] = Room(files: (free.files - 1) / 2, bytes: (free.bytes - bytes) / 2)
        }
        return
      }
      if waiting == nil { waiting = try Waiting(home, whenFull, time) }
      guard let waiting, waiting.wait() else {
        throw WormholeError(
          .full, "send message to", home.name,
          because: free.files < 1
            ? "\(options.largestQueue - free.files) files wait in its inbox, as many as may"
            : "\(options.largestQueueBytes - free.bytes) bytes wait in its inbox, and "
              + "\(options.largestQueueBytes) may",
          hint: "try again once it has received some")
      }
    }
  }

  private func take(_ bytes: Int, _ home: MemberDirectory) -> Bool {
    rooms.withLock { rooms in
      guard var room = rooms[home.name], room.files > 0, room.bytes >= bytes else { return false }
      room.files -= 1
      room.bytes -= bytes
      rooms[home.name] = room
      return true
    }
  }

  private func room(
    in home: MemberDirectory, _ options: Wormhole.MailOptions
  ) throws(WormholeError) -> Room {
    var room = Room(files: options.largestQueue, bytes: options.largestQueueBytes)
    do throws(Errno) {
      let inbox = try home.part(.inbox)
      try home.list(.inbox) { name in
        guard MessageName(name) != nil else { return }
        room.files -= 1
        room.bytes -= (try? inbox.descriptor.status(of: name))?.size ?? 0
      }
    } catch {
      throw WormholeError(error, "count messages to", home, .inbox)
    }
    return room
  }

  /// A wait for something to leave an inbox.
  private final class Waiting {
    private let time: MailTime
    private let deadline: Instant
    private let departures = Monitor(0)
    private var seen = 0
    private var watch: NamedWatch?

    init?(
      _ home: MemberDirectory, _ whenFull: Wormhole.SendOptions.WhenFull, _ time: MailTime
    ) throws(WormholeError) {
      guard case .wait(let patience) = whenFull else { return nil }
      self.time = time
      deadline = time.now + patience
      time.moved?.ring(at: deadline) { [departures] in departures.signal { $0 += 1 } }
      do throws(Errno) {
        watch = try home.watch(.inbox, [.movedFrom, .deleted]) { [departures] _ in
          departures.signal { $0 += 1 }
        }
      } catch {
        throw WormholeError(error, "watch inbox of", home.name)
      }
    }

    deinit { watch?.stop() }

    /// False once patience has ended.
    ///
    /// What left before the watch began is found by the count that follows the first wait, which is
    /// why that one is short.
    func wait() -> Bool {
      let left = deadline - time.now
      guard left > .zero else { return false }
      let pause = min(left, .milliseconds(seen == 0 ? 10 : 1000))
      let now = departures.wait(until: .now + pause) { [seen] in $0 > seen ? $0 : nil }
      seen = max(seen, now ?? 1)
      return true
    }
  }
}

/// The directories of those who are sent to.
final class Receivers: Sendable {
  private struct Known {
    let home: MemberDirectory
    /// When it was looked at last whether it has its name still.
    var seen: Instant
  }

  /// For how long a directory is taken to have its name still: to look costs more than to ask the
  /// clock, and what was moved away takes messages as it did before.
  private static let trust = Duration.milliseconds(100)

  private let known = Monitor<[String: Known]>([:])

  /// The directory of a member, made if it has never joined.
  func home(
    of name: String, in container: Container
  ) throws(WormholeError) -> MemberDirectory {
    let now = Instant.now
    let (found, isDue) = known.withLock { known -> (MemberDirectory?, Bool) in
      guard let one = known[name] else { return (nil, false) }
      let isDue = now - one.seen >= Self.trust
      if isDue { known[name]?.seen = now }
      return (one.home, isDue)
    }
    if let found, !isDue || found.lookAgain() { return found }
    let home = try container.member(name)
    known.withLock { known in
      // Each keeps descriptors open.
      if known.count >= 64 { known = [:] }
      known[name] = Known(home: home, seen: now)
    }
    return home
  }

  func forget(_ home: MemberDirectory) { known.withLock { $0[home.name] = nil } }
}
