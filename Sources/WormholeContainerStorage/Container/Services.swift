internal import WormholeSyscalls

/// A part of a higher layer that belongs to an object of a lower layer: see ``Services``.
package protocol Service: AnyObject, Sendable {
  /// Ends the service. Called when the owner closes, or at once if the owner has closed already.
  func close()
}

extension Service {
  package func close() {}
}

/// The services of one object, such as an open container: one of each class, made on first use.
///
/// The owner names none of these classes, so that its layer does not depend on higher layers. A
/// service lives as long as its owner.
package final class Services: Sendable {
  private struct Entry {
    let type: ObjectIdentifier
    let service: any Service
  }

  private struct State {
    // An array: an owner has few services, and setting up a dictionary takes longer than reading a
    // file.
    var entries: [Entry] = []
    var isClosed = false
  }

  private let state = Monitor(State())

  package init() {}

  /// Returns the service of a class.
  ///
  /// A service that is made after ``close()`` is closed at once.
  ///
  /// - Parameter make: makes the service. Runs under the lock, at most once for each class.
  package func get<Made: Service>(_ make: () -> Made) -> Made {
    let type = ObjectIdentifier(Made.self)
    // Not a tuple with a generic part, whose type the runtime would look up at each call.
    let (service, isLate) = state.withLock { state -> (any Service, Bool) in
      if let entry = state.entries.first(where: { $0.type == type }) {
        return (entry.service, false)
      }
      let made = make()
      state.entries.append(Entry(type: type, service: made))
      return (made, state.isClosed)
    }
    if isLate { service.close() }
    return unsafeDowncast(service, to: Made.self)
  }

  /// Whether ``close()`` was called.
  package var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Closes all services, the latest first.
  package func close() {
    let entries = state.withLock { state in
      state.isClosed = true
      return state.entries
    }
    for entry in entries.reversed() { entry.service.close() }
  }
}
