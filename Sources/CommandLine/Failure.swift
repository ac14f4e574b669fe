package import PropertyLists
package import SharedContainer
import Syscalls

/// Why the command ends without having done what it was asked to.
package struct Failure: Error {
  package var status: Int32
  /// One sentence, without a full stop.
  package let sentence: String
  /// Stable keys for programs that read errors.
  private let details: [String: PropertyListValue]

  /// The command line, or what came with it, makes no sense.
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
    default: self.init(.software, "system", "cannot go on: \(error)")
    }
  }

  /// The same for a program that reads it.
  package var object: [String: PropertyListValue?] {
    details.merging(["error": .string(sentence), "exit": .integer(Int64(status))]) { $1 }
  }
}

/// An error that says itself how a command tells of it.
package protocol FailureTold: Error {
  var failure: Failure { get }
}

/// What the command tells the shell, by the numbers of sysexits(3) from 64 on.
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
    case .done: "it is done"
    case .no: "nothing is there, time was up, or the doctor has found something to do"
    case .usage: "the command line makes no sense"
    case .data: "a value is damaged, of another type, too large, or not what it is said to be"
    case .unavailable: "the other side is not there"
    case .software: "the system failed in a way that says nothing about what to do"
    case .full: "the disk or the quota is full; nothing was changed"
    case .tryAgain: "the value has changed meanwhile, or something has run out: try again"
    case .refused: "owner, permissions or type of a file stand in the way"
    case .configuration: "the directory is no container, or one of a later format"
    case .neverRan: "the program that was to be run was not started"
    case .notRunnable: "the program that was to be run cannot be run"
    case .noProgram: "the program that was to be run is not there"
    }
  }
}

extension WormholeError.Code {
  /// The one place where a code becomes an exit status.
  package var exitCode: ExitCode {
    switch self {
    case .notFound, .timedOut, .undelivered, .rejected: .no
    case .invalidName: .usage
    case .invalidValue, .tooLarge, .typeMismatch, .damaged: .data
    case .system, .nested, .deadlock, .cancelled, .forked: .software
    case .full: .full
    case .nameTaken, .notJoined, .unreachable, .stopped: .unavailable
    case .conflict, .superseded, .exhausted, .notDurable, .partlyDone: .tryAgain
    case .refused, .permissionDenied, .readOnly: .refused
    case .notAContainer, .laterFormat: .configuration
    default: .software
    }
  }
}
