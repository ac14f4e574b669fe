import Wormhole

// The examples for groups of services and for metrics in the article on threads and lifetimes, word
// for word. The types beside them are stand-ins with the interfaces that programs know.

struct Job: Codable, Sendable {
  var number: Int
}

/// With the usual library for groups of services.
enum UsualServices {
  protocol Service: Sendable { func run() async throws }

  /// The moment at which the group asks its services to end.
  @TaskLocal static var shutdown: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

  static func withGracefulShutdownHandler<Result>(
    operation: () async throws -> Result, onGracefulShutdown handler: @Sendable @escaping () -> Void
  ) async rethrows -> Result {
    shutdown?(handler)
    return try await operation()
  }

  struct Printing: Service {
    let queue: Queue<Job>
    let handle: @Sendable (Job) async throws -> Void

    func run() async throws {
      let working = try queue.work(concurrency: 4) { job, message in
        try await handle(job)
      }
      try await withGracefulShutdownHandler {
        try await working.finished()
      } onGracefulShutdown: {
        working.stop()
      }
    }
  }
}

/// With the usual library for metrics.
enum UsualMetrics {
  @TaskLocal static var record: @Sendable (String, Double) -> Void = { _, _ in }

  struct Gauge {
    let label: String
    func record(_ value: Int) { UsualMetrics.record(label, Double(value)) }
  }

  struct Counter {
    let label: String
    func increment() { UsualMetrics.record(label, 1) }
  }

  static func report(_ queue: Queue<Job>) throws {
    Gauge(label: "jobs_waiting").record(try queue.messages.count)
    Gauge(label: "jobs_dead").record(try queue.deadLetters.count)
  }

  static func count(_ options: inout Options) {
    options.log = { entry in
      if entry.level >= .warning { Counter(label: "wormhole_warnings").increment() }
    }
  }
}
