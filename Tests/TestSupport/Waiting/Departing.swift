internal import WormholeSyscalls

/// An object whose end waits until another thread has called a closure.
///
/// As a `deinit` that uses an object of the package, but the test ends too if that object releases
/// this one while holding a lock that the closure needs.
package final class Departing: Sendable {
  private let outcomes: Heard<Bool>
  private let use: @Sendable () -> Void

  /// - Parameter outcomes: receives at the end whether the closure has returned in time.
  package init(_ outcomes: Heard<Bool>, _ use: @escaping @Sendable () -> Void) {
    self.outcomes = outcomes
    self.use = use
  }

  deinit {
    let (returned, use) = (Heard<Bool>(), use)
    _ = try? Thread("departing") {
      use()
      returned.add(true)
    }.detach()
    outcomes.add((try? returned.wait("the use") { !$0.isEmpty }) != nil)
  }
}
