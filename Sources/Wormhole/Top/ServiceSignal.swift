internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A signal that asks a service to end.
public enum ServiceSignal: Sendable, CaseIterable {
  /// SIGTERM, which supervisors and `kill` send.
  case terminate
  /// SIGINT, which a terminal sends on Control-C.
  case interrupt
  /// SIGHUP, which a terminal sends when it is closed.
  case hangUp

  fileprivate var signal: Processes.Signal {
    switch self {
    case .terminate: .terminate
    case .interrupt: .interrupt
    case .hangUp: .hangUp
    }
  }
}

/// Runs a service until its closure returns or a signal arrives.
///
/// The closure runs in a task of its own. The first of the signals cancels this task: receivers,
/// workers and sequences that the closure awaits end in order, and messages in hand are
/// acknowledged or go back to their queue. The function returns once the closure has ended. If the
/// closure ends with a cancellation then, the service has ended in order, and nothing is thrown.
///
/// ```swift
/// try await runService {
///   let container = try await SharedContainer(group: "group.com.example.cinema")
///   try await container.queue("jobs", of: Job.self).work { job, _ in print(job) }.finished()
/// }
/// ```
///
/// After the first signal, and after the end of the function, the signals have their earlier
/// actions again. So a second signal ends a program whose closure does not end. Signals that the
/// process ignores, as a program in the background of a script does, stay ignored. Of several
/// services in one process, each is cancelled.
///
/// The cancellation of the calling task cancels the closure's task as well.
///
/// - Parameters:
///   - signals: the signals that end the service.
///   - service: runs the service, until its task is cancelled.
/// - Throws: the closure's error, except a cancellation after a signal. If the machine has no
///   thread left for the signals, ``WormholeError/Code-swift.struct/exhausted``.
public nonisolated(nonsending) func runService(
  until signals: Set<ServiceSignal> = [.terminate, .interrupt],
  _ service: @escaping @isolated(any) @Sendable () async throws -> Void
) async throws {
  try TaskPool.start("run", "the service")
  let end = Monitor(ServiceEnd())
  let caught = try watch(signals) {
    end.withLock { end in
      end.isAsked = true
      return end.task
    }?.cancel()
  }
  defer { caught.end() }
  let task = Task { try await service() }
  let isAsked = end.withLock { end in
    end.task = task
    return end.isAsked
  }
  if isAsked { task.cancel() }
  do {
    try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  } catch {
    let hasEndedInOrder = error.isCancellation && end.withLock { $0.isAsked }
    if !hasEndedInOrder { throw error }
  }
}

/// The task that a signal cancels, which may arrive before the task.
private struct ServiceEnd {
  var isAsked = false
  var task: Task<Void, any Error>?
}

private func watch(
  _ signals: Set<ServiceSignal>, _ call: @escaping @Sendable () -> Void
) throws(WormholeError) -> CaughtSignals {
  try naming(
    "watch for signals of", "the service", CaughtSignals(Set(signals.map(\.signal.number)), call))
}
