internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The quotas of inboxes.
///
/// To count is to list the inbox, which costs more than to send. Therefore an inbox is counted only
/// when it seems to be full, and a file shared by all senders records how much was sent since: see
/// ``MemberDirectory/Room``. A busy sender reserves space for several messages in advance, never
/// more than a thousandth of the quota, and keeps the reservation while idle.
///
/// Messages that a worker of a queue has claimed in vain are not counted: there are only a few.
///
/// A single sender never exceeds the limits. Concurrent senders may exceed them by a little: by the
/// messages sent while one of the senders counts.
final class Quotas: Service {
  /// Free space, in files and in bytes.
  private struct Free {
    var files: Int
    var bytes: Int
  }

  /// The known state of an inbox.
  private struct CountedQueue {
    let home: MemberDirectory
    var room: MemberDirectory.Room?
    /// Units reserved by this process and not used.
    var left = 0
    /// The units of the next reservation.
    var step = 1
  }

  private let options: MailboxOptions
  private let time: MailTime
  private let inboxes = Monitor<[String: CountedQueue]>([:])
  /// Held while an inbox is counted, so that concurrent threads of this process need not count too.
  private let counting = Monitor(0)

  /// The least bytes counted for a message: one number covers both limits.
  private static let unit = 4096

  private static func units(of bytes: Int) -> Int { max(1, (bytes + unit - 1) / unit) }

  /// The quota of an inbox in units.
  private var most: Int {
    max(1, min(options.maximumQueuedMessages, options.maximumQueueBytes / Self.unit))
  }

  init(_ options: Options) { (self.options, time) = (options.mailbox, options.time) }

  /// Waits for free space, or throws.
  ///
  /// - Parameter sweep: frees space by removing expired messages; returns whether any were removed.
  func admit(
    _ bytes: Int, to home: MemberDirectory, _ whenFull: SendOptions.WhenFull,
    sweep: () -> Bool
  ) throws(WormholeError) {
    guard !take(bytes, home) else { return }
    var waiting: RoomWaiter?
    while true {
      let reserve = waiting?.reserve ?? 1
      let free = try counting.withLock { _ throws(WormholeError) -> Free? in
        // Another thread or process may have counted in the meantime.
        if waiting == nil, take(bytes, home) { return nil }
        // The file exists before the count begins, and seems full until the count is done. A number
        // recorded in the file is therefore never older than any reservation made from the file.
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
        waiting = try RoomWaiter(home, whenFull, time, reserve: options.maximumQueuedMessages / 4)
      }
      guard let waiting, waiting.wait() else {
        try OffPool.checkCancellation("send message to", home.name)
        throw WormholeError(
          .full, "send message to", home.name,
          because: free.files < 1
            ? "the queue of the receiver has \(options.maximumQueuedMessages - free.files) files, "
              + "and the limit is \(options.maximumQueuedMessages)"
            : "the queue of the receiver has \(options.maximumQueueBytes - free.bytes) bytes, "
              + "the message needs \(bytes), and the limit is \(options.maximumQueueBytes)",
          hint: "try again after '\(home.name)' has handled some messages")
      }
    }
  }

  /// Returns false if no space seems to be free, or if the free space is unknown.
  private func take(
    _ bytes: Int, _ home: MemberDirectory
  ) -> Bool {
    let units = Self.units(of: bytes)
    return inboxes.withLock { inboxes in
      let found = inboxes[home.path].flatMap { $0.home === home ? $0 : nil }
      // Each entry keeps a descriptor open.
      if found == nil, inboxes.count >= 64 { inboxes = [:] }
      var known = found ?? CountedQueue(home: home)
      defer { inboxes[home.path] = known }
      if known.left >= units {
        known.left -= units
        return true
      }
      let ask = max(units, min(known.step, most / 1024))
      // Another sender may have counted, and started another file.
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

  /// Records the result of a count, and the message to be sent, if any.
  private func note(
    _ home: MemberDirectory, _ room: MemberDirectory.Room?, _ free: Free, _ bytes: Int?
  ) {
    let most = Double(self.most)
    let files = 1 - Double(free.files) / Double(max(1, options.maximumQueuedMessages))
    let size = 1 - Double(free.bytes) / Double(max(1, options.maximumQueueBytes))
    // The larger share counts: it is nearer to its limit.
    let taken = Int((max(0, files, size) * most).rounded(.up))
    room?.note(taken: taken + (bytes.map(Self.units) ?? 0))
    inboxes.withLock { $0[home.path] = CountedQueue(home: home, room: room) }
  }

  private func free(in home: MemberDirectory) throws(WormholeError) -> Free {
    var free = Free(files: options.maximumQueuedMessages, bytes: options.maximumQueueBytes)
    do throws(Errno) {
      for part in [MemberDirectory.Part.later, .inbox] {
        try home.list(part) { name in
          guard MessageName(name) != nil else { return }
          free.files -= 1
          let size = (try? home.part(part).descriptor.status(of: name))?.size ?? 0
          // A file may claim to be larger than any disk.
          free.bytes -= min(size, free.bytes)
        }
      }
    } catch {
      // If removed in the middle, the inbox contains nothing; the next step makes it again.
      guard error == .noSuchFile else {
        throw WormholeError(error, "count messages to", home, .inbox)
      }
    }
    return free
  }

  /// A wait for a departure from an inbox.
  private final class RoomWaiter {
    private let time: MailTime
    private let deadline: Instant
    private let departures = NoticeCount()
    private var isFirst = true
    /// The free space required to continue.
    ///
    /// If a little were enough, a sender that had to wait would count again for each message. The
    /// requirement shrinks with each wait, so that no sender waits long while any space is free.
    private(set) var reserve: Int
    private var isOver = false
    private var watch: NamedWatch?

    init?(
      _ home: MemberDirectory, _ whenFull: SendOptions.WhenFull, _ time: MailTime,
      reserve: Int
    ) throws(WormholeError) {
      guard case .wait(let patience) = whenFull else { return nil }
      self.reserve = reserve
      self.time = time
      deadline = time.now + patience
      time.moved?.ring(at: deadline) { [departures] in departures.add() }
      watch = try naming("watch inbox of", home.name, at: home) { () throws(Errno) in
        try home.watch(.inbox, [.movedFrom, .deleted]) { [departures] _ in departures.add() }
      }
    }

    deinit { watch?.stop() }

    /// Returns false if the caller was cancelled, or if the deadline has passed and the inbox was
    /// counted afterwards.
    ///
    /// Departures before the start of the watch are found by the count after the first wait.
    /// Therefore the first wait is short.
    func wait() -> Bool {
      let left = deadline - time.now
      guard !isOver, !OffPool.isCancelled else { return false }
      isOver = left <= .zero
      reserve = isOver ? 1 : max(1, reserve / 2)
      if isOver { return true }
      departures.wait(until: .now + min(left, .milliseconds(isFirst ? 10 : 1000)))
      isFirst = false
      return !OffPool.isCancelled
    }
  }
}

extension SharedContainer {
  var quotas: Quotas { services.get { Quotas(options) } }
}
