/// A wrapper that stores a closure where a value of any type can be stored, as in a ``Monitor``.
///
/// A closure that is itself such a value is wrapped once more at each access.
package struct Action: Sendable {
  package let perform: @Sendable () -> Void

  package init(_ perform: @escaping @Sendable () -> Void) { self.perform = perform }
}
