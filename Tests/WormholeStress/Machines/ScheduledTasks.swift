#if FAULT_POINTS
  import WormholeCTesting
  import WormholeSyscalls

  /// The thread of a scheduled process on which Swift's tasks run.
  ///
  /// A schedule does not see Swift's own threads.
  final class ScheduledTasks: Sendable {
    private struct State {
      /// The addresses of jobs.
      var jobs: [UInt] = []
      var hasThread = false
    }

    // Set before the first task of a process; a forked process sets its own.
    private nonisolated(unsafe) static var present: ScheduledTasks?

    private let state = Monitor(State())

    /// Makes the thread of this process with its first task.
    static func begin() {
      present = ScheduledTasks()
      testing_take_jobs { job in ScheduledTasks.present?.add(UInt(bitPattern: job)) }
    }

    private func add(_ job: UInt) {
      let isFirst = state.signal { state in
        state.jobs.append(job)
        defer { state.hasThread = true }
        return !state.hasThread
      }
      guard isFirst else { return }
      do throws(Errno) {
        try Thread("tasks") { self.run() }.detach()
      } catch {
        fatalError("cannot run tasks: \(error)")
      }
    }

    private func run() {
      while true {
        let job = state.wait(until: nil) { state -> UInt? in
          state.jobs.isEmpty ? nil : state.jobs.removeFirst()
        }
        // A wait in a forked process ends at once.
        guard let job else { return }
        testing_run_job(UnsafeMutableRawPointer(bitPattern: job))
      }
    }
  }
#endif
