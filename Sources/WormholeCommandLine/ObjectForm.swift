package import WormholePropertyLists

/// The keys of an object that `--json` writes: always all of these keys, with null for absent
/// values.
///
/// A class, like `Verb`, so that only the requested form is set up.
package final class ObjectForm: Sendable {
  package let name: String
  /// One sentence without a full stop: the verbs that write the object, and its purpose.
  package let summary: String
  package let keys: [Table.Entry]

  package init(_ name: String, _ summary: String, _ keys: [Table.Entry]) {
    self.name = name
    self.summary = summary
    self.keys = keys
  }

  /// Returns one line, with the keys sorted by name.
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
  /// The form of a failed command's error, written to standard error.
  package static let error = ObjectForm(
    "error", "the cause of an exit status other than 0, on standard error",
    [
      ("code", "code of the library's error, or 'usage'"),
      ("errno", "error number of the system"), ("error", "message for people"),
      ("exit", "exit status"), ("hint", "next step"),
      ("operation", "failed operation"), ("reason", "cause"),
      ("subject", "object of the operation"),
    ])
}
