import TestSupport
import Testing
import Wormhole
import WormholeSyscalls
import WormholeTesting

/// The examples for groups of services and for metrics, run.
@Suite struct ServicesTests {
  private let folder: TemporaryDirectory
  private let queue: Queue<Job>

  init() throws {
    folder = try TemporaryDirectory()
    queue = try SharedContainer(directory: folder.path + "/hole").queue("jobs")
  }

  @Test func aServiceEndsWithItsGroup() async throws {
    let (handled, ends) = (Monitor(0), Monitor<[@Sendable () -> Void]>([]))
    let service = UsualServices.Printing(queue: queue) { job in
      handled.signal { $0 += job.number }
    }
    try await queue.send(Job(number: 7))
    let running = Task {
      let shutdown: @Sendable (@escaping @Sendable () -> Void) -> Void = { end in
        ends.signal { $0.append(end) }
      }
      try await UsualServices.$shutdown.withValue(shutdown) { try await service.run() }
    }
    try await WormholeTesting.eventually("it works", within: patience) {
      handled.withLock { $0 } == 7 && ends.withLock { $0.count } == 1
    }
    for end in ends.withLock({ $0 }) { end() }
    try await running.value
    #expect(try queue.messages.isEmpty)
  }

  @Test func metricsAreRecorded() async throws {
    try await queue.send(contentsOf: [Job(number: 1), Job(number: 2)])
    let recorded = Monitor<[String: Double]>([:])
    let record: @Sendable (String, Double) -> Void = { label, value in
      recorded.withLock { $0[label, default: 0] += value }
    }
    try UsualMetrics.$record.withValue(record) {
      try UsualMetrics.report(queue)
      var options = Options()
      UsualMetrics.count(&options)
      options.log(LogEntry(.warning, "text"))
      options.log(LogEntry(.info, "text"))
    }
    #expect(
      recorded.withLock { $0 } == ["jobs_waiting": 2, "jobs_dead": 0, "wormhole_warnings": 1])
  }
}
