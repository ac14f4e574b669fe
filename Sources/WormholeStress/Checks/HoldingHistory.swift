/// What a worker held at each look, and whether it grows.
///
/// How much it may hold at a moment is one bound; it is far above what is needed, and a leak of one
/// thread for each time that somebody joins passes under it for a long time. So growth is looked
/// for as well, in each life that is long enough: what it holds *least* of in the last third of its
/// looks, against the first third. A call that waits has a thread and some descriptors while it
/// does, so that the most that is held goes up and down; what is never given back is there at every
/// look.
///
/// Once the numbers went up to 66 threads, and the bound was raised, as those were taken for
/// Dispatch's. They were the lock's: each channel that is made for one change left the thread that
/// had waited for its lock behind for a fifth of a second. With that mended there are 3 to 15.
///
/// Dispatch keeps a thread that it has started for five seconds after its last use, and uses those
/// that it has in turn. So what a burst of work has started is there at every look of a short life,
/// and as long as there is a little to do for each: once ten became twenty and stayed so. Threads
/// are taken to grow only where the looks last several times as long, and Dispatch's only if there
/// are more in each third of them than in the one before.
struct HoldingHistory {
  struct Holding {
    var descriptors: Int
    var threads: Int
    /// But for those of queues.
    var ownThreads: Int
    var memory: Int
  }

  /// More than these is never held.
  static let most = Holding(descriptors: 160, threads: 40, ownThreads: 40, memory: 200_000)
  /// By more than this the least that is held does not grow.
  static let growth = Holding(descriptors: 40, threads: 8, ownThreads: 8, memory: 24_000)
  /// After how many looks it has opened what it keeps open, and how many are enough to tell.
  private static let (first, enough) = (10, 30)
  /// For how long it must have been looked at before more threads mean anything, in nanoseconds.
  private static let longEnoughForThreads: Int64 = 20_000_000_000

  private(set) var violations: [Violation] = []

  init(_ worker: Int, _ entries: [Journal.Entry]) {
    var looks: [(time: Int64, held: Holding)] = []
    for entry in entries {
      switch entry.event {
      case .life:
        judge(looks, worker)
        looks = []
      case .holding(let descriptors, let threads, let ownThreads, let memory):
        let held = Holding(
          descriptors: descriptors, threads: threads, ownThreads: ownThreads, memory: memory)
        looks.append((entry.time, held))
      default: break
      }
    }
    judge(looks, worker)
  }

  private mutating func judge(_ looks: [(time: Int64, held: Holding)], _ worker: Int) {
    let ways: [(KeyPath<Holding, Int>, String)] = [
      (\.descriptors, "descriptors"), (\.threads, "threads"),
      (\.ownThreads, "threads of its own"), (\.memory, "KiB"),
    ]
    for (way, what) in ways {
      let held = looks.map { $0.held[keyPath: way] }
      if let most = held.max(), most > Self.most[keyPath: way] {
        violations.append(Violation(.leak, "worker \(worker) holds \(most) \(what)"))
      }
      guard held.count >= Self.enough else { continue }
      let isOfThreads = way == \.threads || way == \.ownThreads
      let time = looks.last!.time - looks[0].time
      if isOfThreads, time < Self.longEnoughForThreads { continue }
      let settled = held.dropFirst(Self.first)
      let third = settled.count / 3
      let (begin, end) = (settled.prefix(third).min()!, settled.suffix(third).min()!)
      let bound = Self.growth[keyPath: way]
      let middle = settled.dropFirst(third).prefix(third).min()!
      let isSteady = middle - begin > bound / 2 && end - middle > bound / 2
      if end - begin > bound, way != \.threads || isSteady {
        violations.append(
          Violation(.leak, "worker \(worker) never held less than \(begin) \(what), then \(end)"))
      }
    }
  }
}
