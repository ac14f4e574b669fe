import WormholeSyscalls

/// Prints that a subject was not tested, so that no reader takes the subject for passed.
///
/// `.ci/run` gathers and counts the lines. A skip is for tools, file systems or rights (root) that
/// the machine does not offer; never for a failure.
package func skip(_ what: String, because reason: String) {
  // If the log cannot be written, no output is left for a complaint.
  try? StandardStream.error.write("SKIPPED: \(what): \(reason)\n")
}

/// Prints that a subject was not tested because a program is missing.
///
/// `.ci/run` fails if it has installed the program itself.
package func skip(_ what: String, missing program: String) {
  skip(what, because: "there is no \(program)")
}
