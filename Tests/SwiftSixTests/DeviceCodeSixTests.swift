import TestTraits
import Testing

/// What code for devices does, compiled in Swift 6 mode.
@Suite(.blocking) struct DeviceCodeSixTests {
  private let code: DeviceCode

  init() throws { code = try DeviceCode() }

  @Test func errorHandlersOfTheMainActorRunThere() throws {
    try code.errorHandlersOfTheMainActorRunThere()
  }

  @Test func aDelegateUsesItselfInItsHandlers() throws {
    try code.aDelegateUsesItselfInItsHandlers()
  }

  @Test func aListenerOfTheMainActorRunsThereWhateverTheQueue() throws {
    try code.aListenerOfTheMainActorRunsThereWhateverTheQueue()
  }

  @Test func transportsAreSubclassedAndReplaced() throws {
    try code.transportsAreSubclassedAndReplaced()
  }

  @Test func aSubclassSeesTheListenersOfItsWormhole() throws {
    try code.aSubclassSeesTheListenersOfItsWormhole()
  }

  @Test func aPresenterIsReleasedAndANamedFunctionIsCalled() throws {
    try code.aPresenterIsReleasedAndANamedFunctionIsCalled()
  }

  @Test func sizesAreSettings() { code.sizesAreSettings() }
}
