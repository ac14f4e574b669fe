package import WormholePropertyLists
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
package struct PresenterEntry: FileRecord, Sendable {
  /// Absolute, and without links in the directories above.
  package private(set) var paths: [AccessPath] = []
  /// Accesses with this purpose do not ask the presenter.
  package private(set) var purpose = ""
  /// The guest of the container under which the presenter's process accepts requests.
  package private(set) var guest = ""
  /// Whether readers ask the presenter too, and not only writers.
  package private(set) var mindsReaders = true

  /// The largest file that is read.
  static let largestFile = 1 << 20

  package init() {}

  package init(_ paths: [AccessPath], purpose: String, guest: String, mindsReaders: Bool) {
    self.paths = paths
    self.purpose = purpose
    self.guest = guest
    self.mindsReaders = mindsReaders
  }

  package mutating func visit(_ fields: inout some FieldVisitor) throws {
    var texts = paths.map(\.text)
    try fields.field("paths", &texts)
    try fields.check(
      "paths", !texts.isEmpty && texts.allSatisfy { $0.begins(with: "/") },
      "a presenter has absolute paths")
    paths = texts.map { AccessPath($0) }
    try fields.field("purpose", &purpose)
    try fields.field("guest", &guest)
    // The guest becomes the name of a directory.
    try fields.check("guest", Randomness.isName(guest), "a guest has 16 hexadecimal digits")
    var minds: Bool? = mindsReaders
    // Readers ask a presenter whose file does not answer the question.
    try? fields.field("mindsReaders", &minds)
    mindsReaders = minds ?? true
  }

  /// The file, with its keys in alphabetical order.
  package func encoded() throws -> [UInt8] {
    try entries().encoded(atMost: Self.largestFile)
  }

  /// Whether a presented path equals any of the paths, or is above or below any path.
  package func isRelated(to others: some Sequence<AccessPath>) -> Bool {
    others.contains { other in paths.contains { $0.isRelated(to: other) } }
  }
}
