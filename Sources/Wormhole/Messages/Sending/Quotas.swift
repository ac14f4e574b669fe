internal import SharedContainer
internal import Syscalls

/// How much room inboxes have.
///
/// To count is to list, which costs more than to send. So an inbox is counted when it seems to be
/// full, and how much was sent since is kept in a file that all senders share: see
/// ``MemberDirectory/Room``. A process that sends much takes from it for some messages at a time,
/// never more than a thousandth of all there is; that is what one that is idle keeps.
///
/// One sender never exceeds the bounds. Several at the same time may by a little: by what is sent
/// while one of them counts.
final class Quotas: Sendable {
  /// Free room, in what it is bounded by.
  private struct Free {
    var files: Int
    var bytes: Int
  }

  /// What is known of an inbox.
  private struct Known {
    let home: MemberDirectory
    var room: MemberDirectory.Room?
    /// What this process has taken and not used.
    var left = 0
    /// How much it takes next.
    var step = 1
  }

  private let options: Wormhole.MailOptions
  private let time: MailTime
  private let inboxes = Monitor<[String: Known]>([:])
  /// Held while an inbox is counted: others of this process need not do the same meanwhile.
  private let counting = Monitor(0)

  /// The bytes that a message is taken to have at least, so that one number stands for both bounds.
  private static let unit = 4096

  private static func units(of bytes: Int) -> Int { max(1, (bytes + unit - 1) / unit) }

  /// How many units there may be.
  private var most: Int {
    max(1, min(options.largestQueue, options.largestQueueBytes / Self.unit))
  }

  init(_ options: Wormhole.Options) { (self.options, time) = (options.mail, options.time) }

  /// Waits for room, or throws.
  ///
  /// - Parameter sweep: makes room of what nobody is to have any more; whether there was any.
  func admit(
    _ bytes: Int, to home: MemberDirectory, _ whenFull: Wormhole.SendOptions.WhenFull,
    sweep: () -> Bool
  ) throws(WormholeError) {
    guard !take(bytes, home) else { return }
    var waiting: Waiting?
    while true {
      let reserve = waiting?.reserve ?? 1
      let free = try counting.withLock { _ throws(WormholeError) -> Free? in
        // Somebody else may have counted meanwhile.
        if waiting == nil, take(bytes, home) { return nil }
        // It is there before the count begins, and seems full until that is done, so that what is
        // noted in it is never older than what others have been given from it.
        let full = most + 1
        let room = home.makeRoom(taken: full)
        var free = try self.free(in: home)
        var isFree: Bool { free.files >= reserve && free.bytes >= bytes }
        if !isFree, sweep() { free = try self.free(in: home) }
        note(home, room, free, isFree ? bytes : nil)
        return isFree ? nil : free
      }
      guard let free else { return }
      if waiting == nil {
        waiting = try Waiting(home, whenFull, time, reserve: options.largestQueue / 4)
      }
      guard let waiting, waiting.wait() else {
        try OffPool.checkCancellation("send message to", home.name)
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

  /// False if there seems to be no room, or nobody knows.
  private func take(
    _ bytes: Int, _ home: MemberDirectory
  ) -> Bool {
    let units = Self.units(of: bytes)
    return inboxes.withLock { inboxes in
      // Each keeps a descriptor open.
      if inboxes[home.name]?.home !== home, inboxes.count >= 64 { inboxes = [:] }
      var known = inboxes[home.name] ?? Known(home: home)
      if known.home !== home { known = Known(home: home) }
      defer { inboxes[home.name] = known }
      if known.left >= units {
        known.left -= units
        return true
      }
      let ask = max(units, min(known.step, most / 1024))
      // Somebody may have counted, and have begun another file.
      for _ in 0..<2 {
        if known.room == nil { known.room = home.openRoom() }
        guard let room = known.room else { return false }
        guard let taken = room.take(ask) else {
          known.room = nil
          continue
        }
        guard taken <= most else { return false }
        known.left += ask - units
        known.step = min(known.step * 2, 64)
        return true
      }
      return false
    }
  }

  /// Notes what was counted, and the message that is to be sent, if one is.
  private func note(
    _ home: MemberDirectory, _ room: MemberDirectory.Room?, _ free: Free, _ bytes: Int?
  ) {
    let most = Double(self.most)
    let files = 1 - Double(free.files) / Double(max(1, options.largestQueue))
    let size = 1 - Double(free.bytes) / Double(max(1, options.largestQueueBytes))
    // So that it is the one of the bounds that is nearer.
    let taken = Int((max(0, files, size) * most).rounded(.up))
    room?.note(taken: taken + (bytes.map(Self.units) ?? 0))
    inboxes.withLock { $0[home.name] = Known(home: home, room: room) }
  }

  private func free(in home: MemberDirectory) throws(WormholeError) -> Free {
    var free = Free(files: options.largestQueue, bytes: options.largestQueueBytes)
    do throws(Errno) {
      try home.list(.inbox) { name in
        guard MessageName(name) != nil else { return }
        free.files -= 1
        let size = (try? home.part(.inbox).descriptor.status(of: name))?.size ?? 0
        // A file may say that it is larger than any disk.
        free.bytes -= min(size, free.bytes)
      }
    } catch {
      // Removed in the middle, it holds nothing; the next step makes it anew.
      guard error == .noSuchFile else {
        throw WormholeError(error, "count messages to", home, .inbox)
      }
    }
    return free
  }

  /// A wait for something to leave an inbox.
  private final class Waiting {
    private let time: MailTime
    private let deadline: Instant
    private let departures = Monitor(0)
    private var seen = 0
    /// How much room there is to be: whoever had to wait goes on when there is room for some time,
    /// or it would count each time; but it does not wait long while there is any.
    private(set) var reserve: Int
    private var isOver = false
    private var watch: NamedWatch?

    init?(
      _ home: MemberDirectory, _ whenFull: Wormhole.SendOptions.WhenFull, _ time: MailTime,
      reserve: Int
    ) throws(WormholeError) {
      guard case .wait(let patience) = whenFull else { return nil }
      self.reserve = reserve
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

    /// False once patience has ended and it was looked after that, or nobody wants it any more.
    ///
    /// What left before the watch began is found by the count that follows the first wait, which is
    /// why that one is short.
    func wait() -> Bool {
      let left = deadline - time.now
      guard !isOver, !OffPool.isCancelled else { return false }
      isOver = left <= .zero
      reserve = isOver ? 1 : max(1, reserve / 2)
      if isOver { return true }
      let end = Instant.now + min(left, .milliseconds(seen == 0 ? 10 : 1000))
      var now: Int?
      repeat {
        // A task may be cancelled meanwhile.
        let look = OffPool.cancellation == nil ? end : min(end, .now + .milliseconds(25))
        now = departures.wait(until: look) { [seen] in $0 > seen ? $0 : nil }
        if OffPool.isCancelled { return false }
      } while now == nil && Instant.now < end
      seen = max(seen, now ?? 1)
      return true
    }
  }
}

/// The directories of those who are sent to.
final class Receivers: Sendable {
  private let known = KnownHomes<String>()

  /// The directory of a member, made if it has never joined.
  func home(
    of name: String, in container: Container
  ) throws(WormholeError) -> MemberDirectory {
    if let home = known.home(of: name) { return home }
    let home = try container.member(name)
    known.keep(home, of: name)
    return home
  }

  func forget(_ home: MemberDirectory) { known.forget(home.name) }
}
