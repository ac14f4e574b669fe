import TestTraits
import Testing
import WormholeSyscalls

/// The treatment of errors and interruptions in every wrapper.
@Suite(.blocking) struct CallTableTests {
  /// One wrapper has no row: `waitUntilBroken()` waits for the end of a pipe that is a standard
  /// stream, and the command's tests call the wrapper in processes of their own.
  @Test func everyCallHasARow() {
    #expect(Set(table.map(\.call)) == Set(Call.allCases))
  }

  @Test(arguments: table)
  func succeedsLeftAlone(_ row: Row) throws {
    let attempt = try Attempt(row, [])
    #expect(attempt.error == nil)
    #expect(attempt.count(of: row.call) > 0)
  }

  @Test(arguments: table)
  func throwsWhatErrnoSays(_ row: Row) throws {
    for error in [Errno.inputOutput, .noMemory, .tooManyOpenFiles] {
      let attempt = try Attempt(row, [FaultRule(row.call, .fail(error))])
      #expect(attempt.error == error)
      #expect(attempt.count(of: row.call) == 1)
    }
  }

  @Test(arguments: table)
  func meetsOneInterruption(_ row: Row) throws {
    let undisturbed = try Attempt(row, []).count(of: row.call)
    let attempt = try Attempt(row, [FaultRule(row.call, .fail(.interrupted))])
    switch row.interruption {
    case .retried:
      #expect(attempt.error == nil)
      #expect(attempt.count(of: row.call) == undisturbed + 1)
    case .thrown:
      #expect(attempt.error == .interrupted)
      #expect(attempt.count(of: row.call) == 1)
    case .answered:
      #expect(attempt.error == nil)
      #expect(attempt.count(of: row.call) == 1)
    }
  }

  @Test(arguments: table.filter { $0.interruption == .retried })
  func givesUpAfterManyInterruptions(_ row: Row) throws {
    let rule = FaultRule(row.call, persistent: true, .fail(.interrupted))
    let attempt = try Attempt(row, [rule])
    #expect(attempt.error == .interrupted)
    #expect(attempt.count(of: row.call) == 1001)
  }
}

/// One try at a row under fault rules.
struct Attempt {
  var error: Errno?
  let calls: [String]

  init(_ row: Row, _ rules: [FaultRule]) throws {
    let scene = try Scene()
    var caught: Errno?
    calls = try FaultPoints.with(rules) {
      do {
        try row.body(scene)
      } catch let error as Errno {
        caught = error
      }
    }
    error = caught
  }

  func count(of call: Call) -> Int { calls.count { $0.hasPrefix(call.rawValue + " ") } }
}
