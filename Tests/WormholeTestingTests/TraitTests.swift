import TestSupport
import Testing
import Wormhole
import WormholeSyscalls
import WormholeTesting
import WormholeTestingTraits

/// The trait that gives each test a container.
@Suite(.temporaryContainer) struct TraitTests {
  private static let directories = Heard<String>()

  @Test(arguments: 1...3) func eachCaseHasAContainerOfItsOwn(_ number: Int) async throws {
    let container = try await TemporaryContainer.current.open()
    let numbers = container.channel("numbers", of: [Int].self)
    try await numbers.update(default: []) { $0.append(number) }
    #expect(try numbers.value == [number])
    Self.directories.add(TemporaryContainer.current.directory)
    let all = Self.directories.all
    #expect(Set(all).count == all.count)
  }

  @Test func theDirectoryIsRemovedAtTheEnd() async throws {
    let own = TemporaryContainer.current.directory
    let seen = Heard<String>()
    let trait: TemporaryContainerTrait = .temporaryContainer
    try await trait.provideScope(
      for: #require(Test.current), testCase: Test.Case.current
    ) {
      try await TemporaryContainer.current.open().channel("a").put(1)
      seen.add(TemporaryContainer.current.directory)
    }
    let inner = try #require(seen.all.first)
    #expect(inner != own && TemporaryContainer.current.directory == own)
    #expect((try? Descriptor.status(ofPath: inner)) == nil)
    #expect((try? Descriptor.status(ofPath: own)) != nil)
  }
}
