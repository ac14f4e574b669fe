package import Dispatch

/// A closure of a user, which runs where its isolation requires.
///
/// The originals declare such closures without `@Sendable`, so that they may use anything: as on
/// devices, the program names the queue on which its closures run. A closure of the main actor runs
/// on the main queue, whatever queue was named, and a closure of another actor runs on that actor.
package struct IsolatedCallback<Argument>: @unchecked Sendable {
  // The closure runs on its queue or actor only.
  private let body: (Argument) -> Void
  private let isolation: (any Actor)?

  /// Takes a closure with one parameter.
  package init(_ body: @escaping @isolated(any) (Argument) -> Void) {
    isolation = body.isolation
    // The type without the isolation has the same calling convention; `call` keeps the isolation.
    self.body = unsafeBitCast(body, to: ((Argument) -> Void).self)
  }

  /// Takes a closure with two parameters.
  package init<First, Second>(
    _ body: @escaping @isolated(any) (First, Second) -> Void
  ) where Argument == (First, Second) {
    isolation = body.isolation
    // As above.
    let body = unsafeBitCast(body, to: ((First, Second) -> Void).self)
    self.body = { body($0.0, $0.1) }
  }

  /// Calls the closure on a queue, or where its isolation requires.
  ///
  /// - Parameter argument: returns the argument; nil if the call is no longer wanted.
  package func call(on queue: DispatchQueue, _ argument: @escaping @Sendable () -> Argument?) {
    guard let isolation else { return queue.async { run(argument) } }
    if isolation === MainActor.shared { return DispatchQueue.main.async { run(argument) } }
    Task { await run(argument, on: isolation) }
  }

  /// Calls a closure without an isolation at once; others as `call(on:_:)` does.
  package func callHere(_ argument: @escaping @Sendable () -> Argument?) {
    if isolation == nil { run(argument) } else { call(on: .main, argument) }
  }

  private func run(_ argument: () -> Argument?) {
    if let argument = argument() { body(argument) }
  }

  private func run(_ argument: @Sendable () -> Argument?, on actor: isolated any Actor) {
    run(argument)
  }
}
