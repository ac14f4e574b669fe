/// A closure to be kept where a value of any type may be kept, as in a ``Monitor``.
///
/// A closure that is itself such a value is wrapped once more each time it is looked at.
package struct Action: Sendable {
  package let perform: @Sendable () -> Void

  package init(_ perform: @escaping @Sendable () -> Void) { self.perform = perform }
}
