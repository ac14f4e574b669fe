/// The generation lock: one change of one file, made by one process at a time, which nobody can
/// hold up, suspended holders included.
///
/// The lock is `flock`, exclusive, on a file `lock/<g>`. The kernel frees a dead holder's lock. A
/// *suspended* holder keeps it, so its waiters go on without it: they make `lock/<g+1>`, the next
/// generation, and the sleeper finds on waking that nothing it does counts any more.
///
/// In the order in which it happens:
///
///     find       g is the highest generation there is: while `lock/<g+1>` exists, g += 1
///     lock       open `lock/<g>` and flock it; wait, if somebody has it
///     open       make sure of the directory `lock/<g>.d` and open it
///     remove     remove the `.d` of every lower generation (once a process and generation)
///     look       if `lock/<g+1>` exists, unlock and begin again
///     mark       write something new into `lock/<g>`
///     run        read the value, compute the next
///     commit     write it to `lock/<g>.d/next` through the descriptor opened above, and exchange
///                that with the value; if the directory is gone, unlock and begin again
///     unlock     unlink what the exchange brought out, unlock
///
/// and while it waits, a waiter looks at the mark. When that has stood still for a lease, it makes
/// a lock file under a name of its own, flocks it, and links it to `lock/<g+1>`. If the name is
/// taken, somebody was faster, and it begins again; otherwise it holds generation g+1, and goes on
/// with `open`.
///
/// Why no update is lost, whenever anybody is stopped, continued or killed:
///
/// - Lock files are never removed, so that `lock/<g+1>` does not exist means that g is the highest
///   generation there ever was; and the link succeeds for one process in history.
/// - A holder opens its directory *before* it looks for g+1. A successor makes g+1 *before* it
///   removes that directory, and removes it before it reads. So either the holder sees g+1 and
///   goes, or its directory is dead by the time the successor reads the value.
/// - In a dead directory nothing can be made, and nothing can be renamed out of it. The value
///   changes only by a rename out of such a directory. So a superseded holder changes nothing,
///   wherever it was stopped.
///
/// Somebody may remove a lock file by hand all the same. Then the directory `lock/<g>.d` still
/// tells of its generation. Who misses the file goes on as if its holder stood still, and who has
/// opened a directory looks once for those of higher generations, and whether its own file has its
/// name.
///
/// Who cleans up: what a dead holder left in `lock/<g>.d` goes with the next change, or with the
/// directory itself; a lock file that was never linked lies in `staging/` and is swept there.
///
/// This file is the order of things alone, without a system call, so that tests can walk through
/// all interleavings of it. ``LockExecutor`` carries the actions out.
package struct LockMachine: Hashable, Sendable {
  /// What is to be done next.
  package enum Action: Hashable, Sendable {
    /// Go up from this generation as long as there is a next one. Answer: `found`.
    case find(from: Int)
    /// Answer: `locked` or `contended`.
    case tryLock(Int)
    /// Answer: `locked`, `newer`, `stoodStill` or `gaveUp`.
    case wait(Int)
    /// Make and hold this generation. Answer: `made` or `existed`.
    case make(Int)
    /// Answer: `opened`.
    case openStaging(Int)
    /// Answer: `removed`.
    case removeStaging(below: Int)
    /// Answer: `newer` or `newest`.
    case look(for: Int)
    /// Answer: `marked`.
    case mark(Int)
    /// Answer: `changed` or `unchanged`.
    case run
    /// Answer: `committed`, `superseded` or `outlasted`.
    case commit
    /// Answer: `unlocked`.
    case unlock(Int)
    case finish(Ending)
  }

  /// What came of the last action.
  package enum Event: Hashable, Sendable {
    case begin
    case found(Int)
    case locked, contended
    case newer, newest, stoodStill, gaveUp
    case made, existed
    case opened, removed, marked
    case changed, unchanged
    case committed, superseded
    /// Superseded because the update ran for longer than it may: running it again would too.
    case outlasted
    case unlocked
    /// A system call failed; the machine tidies up and ends.
    case failed
  }

  package enum Ending: Hashable, Sendable {
    case committed
    /// The caller's code changed nothing.
    case unchanged
    /// The wait ended before there was a lock.
    case gaveUp
    /// Too many times in a row others took over.
    case superseded
    case failed
  }

  /// How often an update runs again after others took over, before the caller is told.
  package static let rerunLimit = 100

  /// The highest generation known so far.
  ///
  /// Kept from one change to the next.
  package private(set) var generation: Int
  /// Below this generation this process has removed every staging directory.
  package private(set) var removedBelow = 0
  package private(set) var holds = false
  package private(set) var reruns = 0
  /// What follows once the lock is given back; nil: begin again.
  private var afterwards: Ending?
  /// The next generation was seen to exist.
  private var isSuperseded = false

  package init(generation: Int = 1) { self.generation = generation }

  /// Says what is to be done, now that this has come of the last action.
  package mutating func next(_ event: Event, fence: Bool = true, removal: Bool = true) -> Action {
    switch event {
    case .begin:
      reruns = 0
      return .find(from: generation)
    case .found(let highest):
      generation = highest
      return .tryLock(generation)
    case .contended:
      return .wait(generation)
    case .stoodStill:
      return .make(generation + 1)
    case .existed:
      generation += 1
      return .find(from: generation)
    case .made:
      generation += 1
      holds = true
      return .openStaging(generation)
    case .locked:
      holds = true
      return .openStaging(generation)
    case .opened:
      if removal, removedBelow < generation { return .removeStaging(below: generation) }
      return fence ? .look(for: generation + 1) : .mark(generation)
    case .removed:
      removedBelow = generation
      return fence ? .look(for: generation + 1) : .mark(generation)
    case .newest:
      return .mark(generation)
    case .newer:
      if holds { return giveBack(then: nil, isSuperseded: true) }
      generation += 1
      return .find(from: generation)
    case .marked:
      return .run
    case .changed:
      return .commit
    case .unchanged:
      return giveBack(then: .unchanged)
    case .committed:
      return giveBack(then: .committed)
    case .superseded:
      reruns += 1
      return giveBack(then: reruns > Self.rerunLimit ? .superseded : nil)
    case .outlasted:
      return giveBack(then: .superseded)
    case .gaveUp:
      return .finish(.gaveUp)
    case .failed:
      return holds ? giveBack(then: .failed) : .finish(.failed)
    case .unlocked:
      holds = false
      if isSuperseded { generation += 1 }
      if let afterwards { return .finish(afterwards) }
      return .find(from: generation)
    }
  }

  private mutating func giveBack(then ending: Ending?, isSuperseded: Bool = false) -> Action {
    afterwards = ending
    self.isSuperseded = isSuperseded
    return .unlock(generation)
  }
}
