import PropertyLists
import SharedContainer
import Syscalls

/// Why the command ends without having done what it was asked to.
struct Failure: Error {
  var status: Int32
  /// One sentence, without a full stop.
  let sentence: String
  /// Stable keys for programs that read errors.
  private let details: [String: PropertyListValue]

  /// The command line, or what came with it, makes no sense.
  static func usage(_ sentence: String) -> Failure {
    Failure(.usage, "usage", sentence)
  }

  init(_ status: ExitCode, _ code: String, _ sentence: String) {
    self.status = status.rawValue
    self.sentence = sentence
    details = ["code": .string(code)]
  }

  init(_ error: WormholeError) {
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

  init(_ error: any Error) {
    switch error {
    case let error as Failure: self = error
    case let error as WormholeError: self.init(error)
    case let error as PropertyListError:
      self.init(.data, "invalidValue", "cannot use the value: \(error.reason)")
    case let error as Programs.NeverRan: self.init(error.error)
    default: self.init(.software, "system", "cannot go on: \(error)")
    }
  }

  /// The same, where the caller has to be told that the program it wanted to run did not.
  init(neverRan error: any Error) {
    self.init(error)
    if status != ExitCode.usage.rawValue { status = ExitCode.neverRan.rawValue }
  }

  /// The same for a program that reads it.
  var object: [String: PropertyListValue] {
    details.merging(["error": .string(sentence), "exit": .integer(Int64(status))]) { $1 }
  }
}

/// What the command tells the shell, by the numbers of sysexits(3) from 64 on.
enum ExitCode: Int32, CaseIterable {
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

  var meaning: String {
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
    case .neverRan: "the program that was to be run was never started"
    }
  }
}

extension WormholeError.Code {
  /// The one place where a code becomes an exit status.
  var exitCode: ExitCode {
    switch self {
    case .notFound, .timedOut, .undelivered, .rejected: .no
    case .invalidName: .usage
    case .invalidValue, .tooLarge, .typeMismatch, .damaged: .data
    case .system, .nested, .cancelled: .software
    case .full: .full
    case .nameTaken, .notJoined, .unreachable: .unavailable
    case .conflict, .superseded, .exhausted, .notDurable, .partlyDone: .tryAgain
    case .refused, .permissionDenied, .readOnly: .refused
    case .notAContainer, .laterFormat: .configuration
    }
  }
}
