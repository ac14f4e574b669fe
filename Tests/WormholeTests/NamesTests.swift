import TestSupport
import TestTraits
import Testing
import Wormhole

// A program has types of its own with the names of the module's types.
private enum Durability { case own }
private struct WormholeError: Error {}
private struct Incarnation {}

/// The module's types in a program that has types of the same names.
@Suite(.blocking) struct NamesTests {
  @Test func theModulesTypesHaveAQualifiedName() {
    let durability: Wormhole.Durability = .process
    let value: Wormhole.PropertyListValue = ["a": 1]
    let error = Wormhole.WormholeError(.conflict, "try", "it", because: "of a test")
    let level: Wormhole.LogLevel = .error
    let sharing: Wormhole.Sharing = .owner
    #expect(durability == .process && sharing == .owner && level == .error)
    #expect(value["a"] == 1)
    #expect(error.code == .conflict)
    #expect(Wormhole.Incarnation(rawValue: "0123456789abcdef") != nil)
    #expect(Wormhole.Incarnation(rawValue: "0123") == nil)
    #expect(Durability.own == .own)
    _ = (WormholeError(), Incarnation())
  }

  @Test func aCodeCanBeCaughtAndMayBeOneOfALaterVersion() {
    func kind(_ body: () throws -> Void) -> String {
      do {
        try body()
        return "none"
      } catch Wormhole.WormholeError.Code.conflict {
        return "conflict"
      } catch Wormhole.WormholeError.Code.timedOut, Wormhole.WormholeError.Code.cancelled {
        return "late"
      } catch {
        return "another"
      }
    }
    func failing(_ code: Wormhole.WormholeError.Code) throws {
      throw Wormhole.WormholeError(code, "try", "it", because: "of a test")
    }
    #expect(kind { try failing(.conflict) } == "conflict")
    #expect(kind { try failing(.cancelled) } == "late")
    #expect(kind { try failing(.full) } == "another")
    #expect(kind { throw WormholeError() } == "another")
    let later = Wormhole.WormholeError.Code(rawValue: "ofALaterVersion")
    #expect("\(later)" == "ofALaterVersion")
    #expect(!Wormhole.WormholeError.Code.allCases.contains(later))
    #expect(Set(Wormhole.WormholeError.Code.allCases).count == 30)
  }
}
