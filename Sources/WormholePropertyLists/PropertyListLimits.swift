/// The limits of the cost of one property list for its reader.
///
/// The defaults are defined here and nowhere else. Writers keep the same limits, so that no writer
/// produces a file that readers refuse.
package struct PropertyListLimits: Sendable, Hashable {
  /// The length of the file or text.
  package var bytes = 64 << 20

  /// The depth to which containers may nest; it bounds every recursive use of a value.
  package var depth = 128

  /// The maximum number of objects in the file.
  package var objects = 1 << 20

  /// The maximum number of objects that a walk from the top reaches; a shared object counts each
  /// time.
  package var reached = 1 << 21

  /// The maximum number of reached objects for each byte of the file.
  ///
  /// Writers share strings and numbers, and so reach less than one object a byte; only a file made
  /// to explode comes near this limit.
  package var reachedPerByte = 16

  /// The maximum number of bytes read by such a walk; a shared object's bytes count each time.
  package var expandedBytes = 128 << 20

  package static let `default` = PropertyListLimits()

  package init() {}
}
