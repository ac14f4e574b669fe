internal import WormholePropertyLists
internal import WormholeSyscalls

/// The name of a presenter's file, which is never used twice: `<process>,<number>`.
///
/// The process is the name of the process's file in `processes/`; the accesses and presenters of a
/// process share one counter.
package struct PresenterName: Hashable, Sendable {
  package let process: String
  package let number: Int

  init(process: String, number: Int) {
    self.process = process
    self.number = number
  }

  /// Nil if the text does not have this form.
  init?(_ text: String) {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false)
    guard parts.count == 2, Randomness.isName(String(parts[0])), parts[1].utf8.count <= 16,
      let number = Int(parts[1]), "\(number)" == parts[1]
    else { return nil }
    self.init(process: String(parts[0]), number: number)
  }

  package var text: String { "\(process),\(number)" }
}

/// The content of a presenter's file: written once, before the file becomes visible.
package struct PresenterEntry: Sendable {
  /// Absolute, and without links in the directories above.
  package let paths: [AccessPath]
  /// Accesses with this purpose do not ask the presenter.
  package let purpose: String
  /// The guest of the container under which the presenter's process accepts requests.
  package let guest: String
  /// Whether readers ask the presenter too, and not only writers.
  package let mindsReaders: Bool

  package init(_ paths: [AccessPath], purpose: String, guest: String, mindsReaders: Bool) {
    self.paths = paths
    self.purpose = purpose
    self.guest = guest
    self.mindsReaders = mindsReaders
  }

  /// The largest file that is read.
  static let largestFile = 1 << 20

  /// Whether a presented path equals any of the paths, or is above or below any path.
  package func isRelated(to others: some Sequence<AccessPath>) -> Bool {
    others.contains { other in paths.contains { $0.isRelated(to: other) } }
  }
}

extension PresenterEntry {
  func encoded() throws -> [UInt8] {
    let entries: [String: PropertyListValue] = [
      "paths": .array(paths.map { .string($0.text) }),
      "purpose": .string(purpose),
      "guest": .string(guest),
      "mindsReaders": .boolean(mindsReaders),
    ]
    return try entries.encoded(atMost: Self.largestFile)
  }

  /// Nil if the bytes do not have this form.
  init?(_ bytes: [UInt8]) {
    guard let list = try? BinaryPropertyList.decode(bytes),
      let paths = list["paths"]?.arrayValue?.compactMap(\.stringValue), !paths.isEmpty,
      paths.allSatisfy({ $0.begins(with: "/") }),
      let purpose = list["purpose"]?.stringValue,
      // The guest becomes the name of a directory.
      let guest = list["guest"]?.stringValue, Randomness.isName(guest)
    else { return nil }
    self.init(
      paths.map { AccessPath($0) }, purpose: purpose, guest: guest,
      mindsReaders: list["mindsReaders"]?.boolValue ?? true)
  }
}
