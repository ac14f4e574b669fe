package import PropertyLists

/// What an object has that `--json` writes: always these keys, and null for what is absent.
///
/// A class, as a verb is: only what is asked for is set up.
package final class ObjectForm: Sendable {
  package let name: String
  /// One sentence without a full stop: which verbs write it, and for what.
  package let summary: String
  package let keys: [Table.Entry]

  package init(_ name: String, _ summary: String, _ keys: [Table.Entry]) {
    self.name = name
    self.summary = summary
    self.keys = keys
  }

  /// One line, in the order of the keys' names.
  package func line(
    _ values: [String: PropertyListValue?], limits: PropertyListLimits = .output
  ) throws -> String {
    assert(
      values.keys.allSatisfy { key in keys.contains { $0.name == key } },
      "\(values.keys.sorted()) are not all keys of '\(name)'")
    let fields = try keys.map(\.name).sorted().map { key in
      let value = try values[key].flatMap(\.self).map {
        try JSONPropertyList.encode($0, limits: limits)
      }
      return "\"\(key)\":\(value ?? "null")"
    }
    return "{\(fields.joined(separator: ","))}"
  }
}

extension ObjectForm {
  /// Why a command ends without having done what it was asked to; on standard error.
  package static let error = ObjectForm(
    "error", "why the command ends with a status other than 0, on standard error",
    [
      ("code", "which kind of error, as the library names it, or 'usage'"),
      ("errno", "the system's own number"), ("error", "the sentence that people read"),
      ("exit", "the exit status"), ("hint", "what to do next"),
      ("operation", "what could not be done"), ("reason", "why"),
      ("subject", "what it was to be done to"),
    ])
}
