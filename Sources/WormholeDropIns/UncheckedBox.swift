/// A value that crosses threads without the compiler's check, as the program's author intends.
///
/// Cocoa's and Combine's interfaces take values and closures that are not `Sendable`, and have the
/// author of a program take care that one thread at a time uses them.
// The code that makes a box ensures that one thread at a time uses the value.
package final class UncheckedBox<Value>: @unchecked Sendable {
  package var value: Value
  package init(_ value: Value) { self.value = value }
}
