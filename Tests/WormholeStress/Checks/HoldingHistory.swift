/// The resources that a worker held at each measurement, and whether they grow.
///
/// The first check is a bound for each measurement. The bound is far above the need, so a leak of
/// one thread per join stays below the bound for a long time. The second check looks for growth, in
/// each process that lives long enough: it compares the *least* amount in the last third of the
/// measurements with the first third. A waiting call has a thread and some descriptors while it
/// waits, so the greatest amount goes up and down. A resource that is never released is in every
/// measurement.
///
/// Once the number rose to 66 threads, and the bound was raised, because the threads were taken for
/// Dispatch's. They were the lock's threads: if a channel was made for one change, the thread that
/// had waited for its lock remained for a fifth of a second. Since the repair there are 3 to 15
/// threads.
///
/// The bound of descriptors was 160 until values were saved after their commits. Since then workers
/// hold up to 172; without the saves, fewer than 160. The number of values that may wait does not
/// matter: 8, 32 and 128 give the same. The exact cause is not known. The growth has its own bound.
///
/// Dispatch retains a started thread for five seconds after its last use, and uses its threads in
/// turn. So the threads of a burst of work are in every measurement of a short-lived process. In a
/// longer-lived process the threads remain as long as each has a little work: once ten became
/// twenty and remained. Threads count as growing only if the measurements span several times that
/// period. Dispatch's threads count as growing only if each third of the measurements has more than
/// the third before.
struct HoldingHistory {
  struct Holding {
    var descriptors: Int
    var threads: Int
    /// All threads except the threads of queues.
    var ownThreads: Int
    var memory: Int
  }

  /// The upper bound of each measurement.
  static let most = Holding(descriptors: 240, threads: 40, ownThreads: 40, memory: 200_000)
  /// The upper bound of the growth of the least amount.
  static let growth = Holding(descriptors: 40, threads: 8, ownThreads: 8, memory: 24_000)
  /// The number of measurements until the process has opened all lasting resources, and the number
  /// that suffices for a verdict.
  private static let (first, enough) = (10, 30)
  /// The time span of measurements from which on more threads mean growth, in nanoseconds.
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
