package import WormholeContainerStorage

/// An error was expected and did not come.
package struct Missing: Error {
  package init() {}
}

/// Returns the error that a body throws; fails the test if the body throws none.
package func failure(_ body: () throws -> Void) throws -> WormholeError {
  do {
    try body()
  } catch let error as WormholeError {
    return error
  }
  throw Missing()
}

/// Returns the error that an asynchronous body throws; fails the test if the body throws none.
package func failure(_ body: () async throws -> Void) async throws -> WormholeError {
  do {
    try await body()
  } catch let error as WormholeError {
    return error
  }
  throw Missing()
}
