import Syscalls

/// Says that something was not tested, so that nobody takes it for passed.
///
/// `.ci/run` gathers these lines and counts them. A skip is for what the machine does not offer
/// (a tool, a file system, root); never for a failure.
package func skip(_ what: String, because reason: String) {
  // A log that cannot be written has nobody to complain to.
  try? StandardStream.error.write("SKIPPED: \(what): \(reason)\n")
}
