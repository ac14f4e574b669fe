/// The generation lock: processes change a file in turns, and no process can block the rest,
/// suspended holders included.
///
/// The lock is `flock`, exclusive, on a file `lock/<g>`. The kernel frees a dead holder's lock. A
/// *suspended* holder keeps its lock, so its waiters overtake: they make `lock/<g+1>`, the next
/// generation. When the suspended holder resumes, it finds that its changes no longer take effect.
///
/// The steps, in order:
///
///     find       g is the highest existing generation: while `lock/<g+1>` exists, g += 1
///     lock       open `lock/<g>` and flock it; wait if another process holds it
///     open       make the directory `lock/<g>.d` if it is missing, and open it
///     remove     remove the `.d` of every lower generation (once a process and generation)
///     look       if `lock/<g+1>` exists, unlock and start again
///     mark       write a new mark into `lock/<g>`
///     run        read the value, compute the next
///     commit     write it to `lock/<g>.d/next` through the descriptor opened above, and exchange
///                the new file with the value; if the directory is gone, unlock and start again
///     unlock     unlink the old value, which the exchange moved out, and unlock
///
/// During the wait, a waiter checks the mark. If the mark has not changed for a lease, the waiter
/// makes a lock file under a name of its own, flocks it, and links it to `lock/<g+1>`. If the name
/// is taken, another waiter was faster, and this one starts again; otherwise it holds generation
/// g+1, and continues with `open`.
///
/// Why no update is lost, whichever process is suspended, resumed or killed, and whenever:
///
/// - Lock files are never removed. If `lock/<g+1>` does not exist, g is therefore the highest
///   generation there ever was; and the link succeeds for exactly one process, ever.
/// - A holder opens its directory *before* it checks for g+1. A successor makes g+1 *before* the
///   removal of this directory, and removes the directory before reading. So either the holder
///   finds g+1 and unlocks, or its directory is dead by the time the successor reads the value.
/// - In a dead directory no file can be made, and no file can be renamed out of it. The value
///   changes only by a rename out of a staging directory. A superseded holder therefore changes
///   nothing, at whatever step the process was suspended.
///
/// Another tool may remove a lock file all the same. The directory `lock/<g>.d` then still shows
/// its generation. A process that misses the file continues as if the holder were suspended. A
/// process that has opened a staging directory lists `lock/` once: for directories of higher
/// generations, whose holders it does not disturb, and of lower ones, which it removes. It also
/// checks whether its own lock file still has its name. A process that makes a lock file whose
/// staging directory exists already removes the file again: the holder of an earlier file of that
/// name may still use the directory.
///
/// Clean-up: the files of a dead holder in `lock/<g>.d` are removed with the next change, or with
/// the directory itself; a lock file without a link stays in `staging/` and is swept.
///
/// The file has only the order of the steps, without a system call: tests can explore all
/// interleavings. ``LockExecutor`` carries the actions out.
package struct LockMachine: Hashable, Sendable {
  /// The next step for the executor.
  package enum Action: Hashable, Sendable {
    /// Go up from this generation to the highest one. Event: `found`.
    case find(from: Int)
    /// Event: `locked` or `contended`.
    case tryLock(Int)
    /// Event: `locked`, `newer`, `stoodStill` or `gaveUp`.
    case wait(Int)
    /// Make and hold this generation. Event: `made` or `existed`.
    case make(Int)
    /// Event: `opened`.
    case openStaging(Int)
    /// Event: `removed`.
    case removeStaging(below: Int)
    /// Event: `newer` or `newest`.
    case look(for: Int)
    /// Event: `marked`.
    case mark(Int)
    /// Event: `changed` or `unchanged`.
    case run
    /// Event: `committed`, `superseded` or `outlasted`.
    case commit
    /// Event: `unlocked`.
    case unlock(Int)
    case finish(LockEnd)
  }

  /// The result of the last action.
  package enum Event: Hashable, Sendable {
    case begin
    case found(Int)
    case locked, contended
    case newer, newest, stoodStill, gaveUp
    case made, existed
    case opened, removed, marked
    case changed, unchanged
    case committed, superseded
    /// Superseded because the update exceeded its maximum time: a repetition would too.
    case outlasted
    case unlocked
    /// A system call failed; the machine cleans up and ends.
    case failed
  }

  /// How often a superseded update runs again before the caller gets an error.
  package static let rerunLimit = 100

  /// The highest generation known so far.
  ///
  /// Retained from one change to the next.
  package private(set) var generation: Int
  /// This process has removed all staging directories of lower generations.
  package private(set) var removedBelow = 0
  package private(set) var holds = false
  package private(set) var reruns = 0
  /// The ending after the unlock; nil to start again.
  private var afterwards: LockEnd?
  /// The next generation was found.
  private var isSuperseded = false

  package init(generation: Int = 1) { self.generation = generation }

  /// Returns the next action, given the event that followed the last action.
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

  private mutating func giveBack(then ending: LockEnd?, isSuperseded: Bool = false) -> Action {
    afterwards = ending
    self.isSuperseded = isSuperseded
    return .unlock(generation)
  }
}

package enum LockEnd: Hashable, Sendable {
  case committed
  /// The caller's code changed nothing.
  case unchanged
  /// The wait ended without the lock.
  case gaveUp
  /// Other processes took over too many times in a row.
  case superseded
  case failed
}
