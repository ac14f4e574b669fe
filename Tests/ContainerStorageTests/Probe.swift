import TestSupport
import WormholeContainerStorage
import WormholeSyscalls

/// The results of a separate process that uses a container: how each of its steps ended.
struct Probe {
  let status: ChildStatus
  let steps: [String: String]
  let text: String

  /// Fails if the process takes long: no object in a directory may hold a process up.
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

  /// The names in a directory below the container.
  func contents(_ parts: String...) throws -> [String] {
    let path = ([path] + parts).joined(separator: "/")
    return try Descriptor.open(path: path, [.readOnly, .directory]).names().sorted()
  }
}
