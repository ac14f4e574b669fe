internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Makes the requested changes of other machines to a channel, in order.
///
/// A program may hold the lock of a channel for a long time, and the process that carries must not
/// wait for it.
package final class ChangeWorker: Sendable {
  /// Receives the answer; nil if the change may or may not have been made.
  package typealias Answer = @Sendable (Carrier.ChannelAnswer?) -> Void

  private struct Job {
    let change: Carrier.ChannelChange
    let machine: String
    let answer: Answer
  }

  private let carrier: Carrier
  private let jobs = Monitor<[Job]>([])
  private let worker = Worker(staysOffWatcher: true)

  package init(_ carrier: Carrier) {
    self.carrier = carrier
    worker.begin { [weak self] in self?.makeAll() }
  }

  package func make(
    _ change: Carrier.ChannelChange, for machine: String, _ answer: @escaping Answer
  ) {
    jobs.withLock { jobs in
      // A machine has one change in progress, and waits for the latest request only.
      jobs.removeAll { $0.machine == machine }
      jobs.append(Job(change: change, machine: machine, answer: answer))
    }
    worker.trigger()
  }

  /// Makes no more changes.
  package func stop() { worker.end() }

  private func makeAll() {
    while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
      do throws(WormholeError) {
        job.answer(try carrier.make(job.change, for: job.machine))
      } catch {
        // A change that is not durable yet was made, and is known when it is asked again.
        let isOpen = error.mayPass || [.notDurable, .timedOut, .full].contains(error.code)
        // The channel is a copy by now: its home moves.
        let result: Carrier.ChannelAnswer.Result =
          error.code == .unreachable ? .unreachable : .refused
        job.answer(isOpen ? nil : Carrier.ChannelAnswer(result, reason: error.reason))
      }
    }
  }
}
