import Wormhole

/// The configuration of the service, which may change while the service runs.
public struct PrintConfig: Codable, Equatable, Sendable {
  /// The number of copies of each text.
  public var copies = 1

  /// The default configuration.
  public init() {}
}

/// A job for the workers.
public struct PrintJob: Codable, Sendable {
  /// The text to print.
  public var text: String
  /// The number of copies.
  public var copies: Int
}

/// A request to print a text; the reply is the ID of the job.
public struct PrintRequest: RequestValue {
  /// The ID of a job.
  public typealias Reply = String
  /// The text to print.
  public var text: String

  /// A request for one text.
  public init(text: String) { self.text = text }
}

/// A service for texts, and workers with a printer.
public struct PrintShop: Sendable {
  /// The configuration: the default until a value is put, and the last good value after a bad one.
  public let config: ConfigurationChannel<PrintConfig>
  /// The jobs that no worker has finished.
  public let jobs: Queue<PrintJob>
  /// The number of pages that each job has printed, by ID.
  public let printed: Channel<[String: Int]>
  private let container: SharedContainer
  private let printer: Lock

  /// The print shop of a container.
  public init(_ container: SharedContainer) {
    self.container = container
    config = container.channel("print-config", default: PrintConfig()) { config in
      guard (1...10).contains(config.copies) else { throw TooManyCopies() }
    }
    jobs = container.queue("print-jobs")
    printed = container.channel("printed")
    printer = container.lock("printer")
  }

  /// A configuration that the service does not accept.
  public struct TooManyCopies: Error {}

  /// Accepts requests until the task is cancelled; prints each configuration.
  ///
  /// A second service stands by, and takes over when the first one ends.
  public func serve() async throws {
    try await container.withMember(as: "print-service", within: nil) { member in
      let answering = member.respond(to: PrintRequest.self) { request in
        let job = PrintJob(text: request.text, copies: try config.value.copies)
        return try await jobs.send(job).id
      }
      defer { answering.stop() }
      for try await config in config.values { print("copies: \(config.copies)") }
    }
  }

  /// Prints jobs until the task is cancelled; one worker at a time has the printer.
  public func work() async throws {
    let working = try jobs.work { job, message in
      try await printer.hold {
        // A job of a worker that was killed may have been printed.
        if message.isRedelivered, try await printed.value?[message.id] != nil { return }
        try await printed.update(default: [:]) { $0[message.id] = job.copies }
        print("printed \(job.text)")
      }
    }
    try await working.finished()
  }
}
