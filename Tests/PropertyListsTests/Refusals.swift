import Testing

@testable import WormholePropertyLists

/// Expects an error of this kind and reason.
func refuses(
  _ kind: PropertyListError.Kind, _ reason: String, _ comment: String = "",
  sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
) {
  do {
    try body()
    Issue.record("no error \(comment)", sourceLocation: sourceLocation)
  } catch let error as PropertyListError {
    #expect(error.kind == kind, "\(comment)", sourceLocation: sourceLocation)
    #expect(error.reason == reason, "\(comment)", sourceLocation: sourceLocation)
  } catch {
    Issue.record("another error: \(error) \(comment)", sourceLocation: sourceLocation)
  }
}
