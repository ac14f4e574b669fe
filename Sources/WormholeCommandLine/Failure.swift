package import WormholeContainerStorage
package import WormholePropertyLists
import WormholeSyscalls

/// The reason why the command ends without completing the request.
package struct Failure: Error {
  package var status: Int32
  /// One sentence, without a full stop.
  package let sentence: String
  /// Stable keys for programs that read errors.
  private let details: [String: PropertyListValue]

  /// The cause alone, for a text that states the operation itself.
  package var reason: String { details["reason"]?.stringValue ?? sentence }

  /// The command line, or the input given with it, is invalid.
  package static func usage(_ sentence: String) -> Failure {
    Failure(.usage, "usage", sentence)
  }

  package init(
    _ status: ExitCode, _ code: String, _ sentence: String,
    _ details: [String: PropertyListValue] = [:]
  ) {
    self.status = status.rawValue
    self.sentence = sentence
    self.details = details.merging(["code": .string(code)]) { $1 }
  }

  package init(_ error: WormholeError) {
    status = error.code.exitCode.rawValue
    sentence = error.description
    var details: [String: PropertyListValue] = [
      "code": .string(error.code.rawValue), "operation": .string(error.operation),
      "subject": .string(error.subject), "reason": .string(error.reason),
    ]
    if let hint = error.hint { details["hint"] = .string(hint) }
    if let errno = error.errno { details["errno"] = .integer(Int64(errno)) }
    self.details = details
  }

  package init(_ error: any Error) {
    switch error {
    case let error as Failure: self = error
    case let error as WormholeError: self.init(error)
    case let error as PropertyListError:
      self.init(.data, "invalidValue", "cannot use the value: \(error.reason)")
    case let error as any FailureTold: self = error.failure
    default: self.init(.software, "system", "cannot continue: \(error)")
    }
  }

  /// Whether the failure is a *no*, which the exit status states completely, as nothing was found.
  ///
  /// The failure of another program has the same status, and a reason of its own.
  var isNo: Bool {
    let others: [WormholeError.Code] = [.rejected, .deadLettered, .cancelled]
    return status == ExitCode.no.rawValue
      && !others.contains { details["code"] == .string($0.rawValue) }
  }

  /// The same failure as an object, for a program to read.
  package var object: [String: PropertyListValue?] {
    details.merging(["error": .string(sentence), "exit": .integer(Int64(status))]) { $1 }
  }
}

/// An error that describes itself for a command.
package protocol FailureTold: Error {
  var failure: Failure { get }
}

/// The exit statuses of the command, with the numbers of sysexits(3) from 64 on.
package enum ExitCode: Int32, CaseIterable {
  case done = 0
  case no = 1
  case usage = 64
  case data = 65
  case unavailable = 69
  case software = 70
  case full = 73
  case tryAgain = 75
  case refused = 77
  case configuration = 78
  case neverRan = 125
  case notRunnable = 126
  case noProgram = 127

  package var meaning: String {
    switch self {
    case .done: "success"
    case .no: "no result: not found, timed out, not delivered, or a problem found by doctor"
    case .usage: "the command line is invalid"
    case .data: "a value is damaged, malformed, too large, or of the wrong type"
    case .unavailable: "the peer is not running, or its name is taken"
    case .software: "another error of the system, or a call that would wait for itself"
    case .full: "the disk or the quota is full; nothing was changed"
    case .tryAgain: "a value has changed, a lock is busy, or a resource is exhausted: try again"
    case .refused: "refused because of the owner, permissions or type of a file"
    case .configuration: "the directory is not a container, cannot be made, or has a later format"
    case .neverRan: "the program to run was not started"
    case .notRunnable: "the program to run cannot be executed"
    case .noProgram: "the program to run was not found"
    }
  }
}

extension WormholeError.Code {
  /// The only conversion of a code into an exit status.
  package var exitCode: ExitCode {
    switch self {
    case .notFound, .timedOut, .deadLettered, .rejected: .no
    case .invalidName: .usage
    case .invalidValue, .tooLarge, .typeMismatch, .damaged: .data
    case .system, .nested, .deadlock, .cancelled, .forked: .software
    case .full: .full
    case .nameTaken, .notJoined, .unreachable, .unsupported, .stopped: .unavailable
    case .conflict, .superseded, .exhausted, .notDurable, .partlyDone: .tryAgain
    case .refused, .permissionDenied, .readOnly: .refused
    case .notAContainer, .laterFormat: .configuration
    default: .software
    }
  }
}
