import WormholeContainerStorage
package import WormholePropertyLists
import WormholeSyscalls

/// The output of the command: data on standard output, messages on standard error.
package struct Output: Sendable {
  /// The prefix of the messages.
  let program: String
  package let isJSON: Bool
  package let isQuiet: Bool
  package let isVerbose: Bool
  private var isOfDone = false
  private var gathered: GatheredOutput?

  /// The same output for the report of a completed change: if the report cannot be written, the
  /// error states both facts.
  package var ofDone: Output {
    var output = self
    output.isOfDone = true
    return output
  }

  /// Gathers the lines that the body writes, and writes many of them with one call.
  ///
  /// For lists that do not wait for anything between two lines. Lines before an error are written
  /// too.
  package func gathering(_ body: (Output) throws -> Void) throws {
    var output = self
    let lines = GatheredOutput()
    output.gathered = lines
    do {
      try body(output)
    } catch {
      if !(error is ClosedPipe) { try write(lines.take()) }
      throw error
    }
    try write(lines.take())
  }

  package init(
    _ program: String, isJSON: Bool = false, isQuiet: Bool = false, isVerbose: Bool = false
  ) {
    self.program = program
    self.isJSON = isJSON
    self.isQuiet = isQuiet
    self.isVerbose = isVerbose
  }

  /// Writes data unchanged.
  package func write(_ bytes: [UInt8]) throws {
    if let gathered {
      guard let full = gathered.add(bytes) else { return }
      var output = self
      output.gathered = nil
      return try output.write(full)
    }
    guard !bytes.isEmpty else { return }
    do throws(Errno) {
      try StandardStream.output.write(bytes)
    } catch {
      if error == .brokenPipe { throw ClosedPipe() }
      if isOfDone {
        throw Failure(
          .software, "pending",
          "the operation is done, but its result cannot be written to standard output: \(error)")
      }
      throw WormholeError(error, "write to", "standard output")
    }
  }

  package func write(line: String) throws {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(line.utf8.count + 1)
    bytes.append(contentsOf: line.utf8)
    bytes.append(UInt8(ascii: "\n"))
    try write(bytes)
  }

  /// Writes an object on a line of its own; the object must contain all its keys.
  package func write(_ object: [String: PropertyListValue]) throws {
    try write(line: try JSONPropertyList.encode(.dictionary(object), limits: .output))
  }

  /// Writes one object on one line, with null for the keys of its form that are absent.
  package func write(_ form: ObjectForm, _ values: [String: PropertyListValue?]) throws {
    try write(line: try form.line(values))
  }

  /// Prints a message for the user, unless `--quiet` is set.
  package func tell(_ words: String) {
    if !isQuiet { complain(words) }
  }

  /// Prints a message about a failure that does not end the command, with `--quiet` too.
  package func warn(_ words: String) { complain(words) }

  /// Prints a message for a user who wants every detail.
  package func explain(_ words: String) {
    if isVerbose { complain(words) }
  }

  package func tell(_ failure: Failure) {
    if isQuiet, failure.isNo { return }
    guard isJSON, let line = try? ObjectForm.error.line(failure.object) else {
      complain(failure.sentence)
      return
    }
    try? StandardStream.error.write(line + "\n")
  }

  private func complain(_ sentence: String) {
    // If standard error cannot be written, the exit code is the only report left.
    try? StandardStream.error.write("\(program): \(sentence.withoutControls)\n")
  }
}

/// The reports of a change that covers several names.
///
/// A report that cannot be written ends the reports, and not the change.
package struct ChangeReports {
  private let output: Output
  private var refusal: (any Error)?

  package init(_ output: Output) { self.output = output.ofDone }

  /// Reports the change of a name.
  package mutating func write(_ body: (Output) throws -> Void) {
    guard refusal == nil else { return }
    do {
      try body(output)
    } catch {
      refusal = error
    }
  }

  /// Throws the reason why a report could not be written; called once all names are changed.
  package func finish() throws {
    if let refusal { throw refusal }
  }
}

/// The reader of standard output has gone: not an error, and the command has nothing left to do.
package struct ClosedPipe: Error {
  /// The status that the shell reports for a process ended by a write to such a pipe.
  package static let status: Int32 = 141

  package init() {}
}

extension PropertyListLimits {
  /// The limits of output: printed values were read before, and are longer as text than as bytes.
  package static let output: PropertyListLimits = {
    var limits = PropertyListLimits.default
    limits.bytes = 1 << 30
    return limits
  }()
}

/// Lines that are written together; only the thread of the command uses them.
private final class GatheredOutput: Sendable {
  private let bytes = Monitor<[UInt8]>([])
  private static let limit = 64 * 1024

  /// Adds bytes, and returns all of them if there are enough for a call.
  func add(_ more: [UInt8]) -> [UInt8]? {
    bytes.withLock { bytes in
      bytes += more
      guard bytes.count >= Self.limit else { return nil }
      return exchange(&bytes, with: [])
    }
  }

  func take() -> [UInt8] {
    bytes.withLock { exchange(&$0, with: []) }
  }
}
