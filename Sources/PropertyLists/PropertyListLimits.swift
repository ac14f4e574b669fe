/// What one property list may cost whoever reads it.
///
/// The defaults are here and nowhere else. Writers keep the same limits, so that nothing is written
/// that could not be read back.
package struct PropertyListLimits: Sendable, Hashable {
  /// The length of the file or text.
  package var bytes = 64 << 20

  /// How deep containers may nest; every recursive use of a value is bounded by it.
  package var depth = 128

  /// How many objects the file may hold.
  package var objects = 1 << 20

  /// How many objects a walk from the top reaches, a shared one counted each time.
  package var reached = 1 << 21

  /// How many of them for each byte of the file.
  ///
  /// Writers share strings and numbers, which reaches less than one object a byte; only a file made
  /// to explode comes near this.
  package var reachedPerByte = 16

  /// How many bytes such a walk reads, a shared object's counted each time.
  package var expandedBytes = 128 << 20

  package static let `default` = PropertyListLimits()

  package init() {}
}
