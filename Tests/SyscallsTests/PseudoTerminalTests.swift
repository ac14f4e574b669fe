import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// A terminal between this process and a program.
@Suite(.blocking) struct PseudoTerminalTests {
  @Test func outputArrivesUntilTheProgramsEndIsClosed() throws {
    let terminal = try PseudoTerminal(isForOutput: true)
    let words = Array("seat\n\r\u{3}".utf8)
    let child = try Child.spawn("printf", [#"seat\n\r\003"#], output: terminal.programEnd)
    #expect(try child.wait() == .exited(0))
    // The kernel hands the output over later: the program's end does not wait for that.
    var output: [UInt8] = []
    try eventually("the output has arrived") {
      output += (try? read(terminal)) ?? []
      return output.count >= words.count
    }
    #expect(output == words)
    #expect(throws: Errno.wouldBlock) { try read(terminal) }
    #expect(terminal.mode != nil)
    terminal.closeProgramEnd()
    #expect(terminal.mode == nil)
    // A child that another test is starting may have the program's end open for a moment.
    let failure = try eventually("reading fails") {
      do {
        _ = try read(terminal)
        return Errno?.none
      } catch {
        return error as? Errno == .wouldBlock ? nil : error as? Errno
      }
    }
    #expect(failure == .inputOutput)
  }

  @Test func itHasTheGivenSize() throws {
    let terminal = try PseudoTerminal(columns: 132, rows: 43)
    let child = try Child.spawn(
      "stty", ["size"], input: terminal.programEnd, output: terminal.programEnd)
    #expect(try child.wait() == .exited(0))
    // A terminal for typing has a carriage return before each line feed.
    let size = Array("43 132\r\n".utf8)
    // The kernel hands the output over later, as above.
    var output: [UInt8] = []
    try eventually("the output has arrived") {
      output += (try? read(terminal)) ?? []
      return output.count >= size.count
    }
    #expect(output == size)
  }

  private func read(_ terminal: PseudoTerminal) throws -> [UInt8] {
    try withBuffer(100) { buffer in
      let count = try terminal.own.read(into: buffer)
      return Array(buffer[..<count])
    }
  }
}
