package import PropertyLists
import SharedContainer
import Syscalls

/// What the command writes: data on standard output, words on standard error.
package struct Output: Sendable {
  /// What its words begin with.
  let program: String
  package let isJSON: Bool
  package let isQuiet: Bool
  package let isVerbose: Bool
  private var isOfDone = false

  /// The same for words of what is done: where they cannot be written, that is what the error says.
  package var ofDone: Output {
    var output = self
    output.isOfDone = true
    return output
  }

  package init(
    _ program: String, isJSON: Bool = false, isQuiet: Bool = false, isVerbose: Bool = false
  ) {
    self.program = program
    self.isJSON = isJSON
    self.isQuiet = isQuiet
    self.isVerbose = isVerbose
  }

  /// Writes data as it is.
  package func write(_ bytes: [UInt8]) throws {
    do throws(Errno) {
      try StandardStream.output.write(bytes)
    } catch {
      if error == .brokenPipe { throw ClosedPipe() }
      if isOfDone {
        throw Failure(
          .software, "untold",
          "it is done, but cannot be told: cannot write to standard output: \(error)")
      }
      throw WormholeError(error, "write to", "standard output")
    }
  }

  package func write(line: String) throws { try write(Array((line + "\n").utf8)) }

  /// Writes one object on one line, all of whose keys are there.
  package func write(_ object: [String: PropertyListValue]) throws {
    try write(line: try JSONPropertyList.encode(.dictionary(object), limits: .output))
  }

  /// Writes one object on one line, with null for the keys of its form that are absent.
  package func write(_ form: ObjectForm, _ values: [String: PropertyListValue?]) throws {
    try write(line: try form.line(values))
  }

  /// Says something to whoever looks on, unless they want none of it.
  package func tell(_ words: String) {
    if !isQuiet { complain(words) }
  }

  /// Says something to whoever wants to know it all.
  package func explain(_ words: String) {
    if isVerbose { complain(words) }
  }

  package func tell(_ failure: Failure) {
    if isQuiet, failure.status == ExitCode.no.rawValue { return }
    guard isJSON, let line = try? ObjectForm.error.line(failure.object) else {
      complain(failure.sentence)
      return
    }
    try? StandardStream.error.write(line + "\n")
  }

  private func complain(_ sentence: String) {
    // Where standard error cannot be written there is nobody left to tell; the exit code says it.
    try? StandardStream.error.write("\(program): \(sentence.withoutControls)\n")
  }
}

/// Whoever read standard output has gone: no error, and nothing left to do.
package struct ClosedPipe: Error {
  /// What the shell reports of a process that writing to such a pipe has ended.
  package static let status: Int32 = 141

  package init() {}
}

extension PropertyListLimits {
  /// What is printed was read before, and takes more room as text than it did as bytes.
  package static let output: PropertyListLimits = {
    var limits = PropertyListLimits.default
    limits.bytes = 1 << 30
    return limits
  }()
}
