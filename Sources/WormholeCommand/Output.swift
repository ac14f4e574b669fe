import PropertyLists
import SharedContainer
import Syscalls

/// What the command writes: data on standard output, words on standard error.
struct Output: Sendable {
  var isJSON = false
  var isQuiet = false
  var isVerbose = false

  /// Writes data as it is.
  func write(_ bytes: [UInt8]) throws {
    do throws(Errno) {
      try StandardStream.output.write(bytes)
    } catch {
      if error == .brokenPipe { throw ClosedPipe() }
      throw WormholeError(error, "write to", "standard output")
    }
  }

  func write(line: String) throws { try write(Array((line + "\n").utf8)) }

  /// Writes one object on one line.
  func write(_ object: [String: PropertyListValue]) throws {
    try write(line: try JSONPropertyList.encode(.dictionary(object), limits: .output))
  }

  /// Says something to whoever looks on, unless they want none of it.
  func tell(_ words: String) {
    if !isQuiet { complain(words) }
  }

  /// Says something to whoever wants to know it all.
  func explain(_ words: String) {
    if isVerbose { complain(words) }
  }

  func tell(_ failure: Failure) {
    if isQuiet, failure.status == ExitCode.no.rawValue { return }
    guard isJSON, let line = try? JSONPropertyList.encode(.dictionary(failure.object)) else {
      complain(failure.sentence)
      return
    }
    try? StandardStream.error.write(line + "\n")
  }

  private func complain(_ sentence: String) {
    // Where standard error cannot be written there is nobody left to tell; the exit code says it.
    try? StandardStream.error.write("wormhole: \(sentence)\n")
  }
}

/// Whoever read standard output has gone: no error, and nothing left to do.
struct ClosedPipe: Error {
  /// What the shell reports of a process that writing to such a pipe has ended.
  static let status: Int32 = 141
}

extension PropertyListLimits {
  /// What is printed was read before, and takes more room as text than it did as bytes.
  static let output: PropertyListLimits = {
    var limits = PropertyListLimits.default
    limits.bytes = 1 << 30
    return limits
  }()
}
