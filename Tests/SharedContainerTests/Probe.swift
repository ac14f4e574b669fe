import SharedContainer
import Syscalls
import TestSupport

/// What a process of its own made of a container: how each of its steps ended.
struct Probe {
  let status: ExitStatus
  let steps: [String: String]
  let text: String

  /// Fails if it takes long: nothing that lies in a directory may hold a process up.
  init(_ container: String, _ channel: String = "n") throws {
    let outcome = try run(
      .probe(container, channel))
    status = outcome.status
    text = outcome.output + outcome.errors
    var steps: [String: String] = [:]
    for line in outcome.output.split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 2)
      steps[String(words[0])] = String(words[1].prefix { $0 != ":" })
    }
    self.steps = steps
  }
}

extension Container {
  /// A path below the container.
  func path(_ parts: String...) -> String { ([path] + parts).joined(separator: "/") }

  /// What lies in a directory below the container.
  func contents(_ parts: String...) throws -> [String] {
    let path = ([path] + parts).joined(separator: "/")
    return try Descriptor.open(path: path, [.readOnly, .directory]).names().sorted()
  }
}
