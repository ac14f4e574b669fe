import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Texts in which Swift combines a separator and its neighbour to one character.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct StringBytesTests {
  @Test func whatIsLookedForIsBytes() {
    let path = "/\u{301}a/\u{600}/b"
    #expect(path.begins(with: "/") && path.begins(with: ""))
    #expect("a\u{600}/".ends(with: "/"))
    #expect(!"e\u{301}".begins(with: "\u{e9}") && "e\u{301}".begins(with: "e"))
    #expect(!"/".ends(with: "a/"))
    #expect(path.parts(between: "/") == ["\u{301}a", "\u{600}", "b"])
    #expect("a=\u{301}=b".parts(between: "=", most: 1) == ["a", "\u{301}=b"])
    #expect("=".parts(between: "=", keepingEmpty: true) == ["", ""])
    #expect("".parts(between: "=", keepingEmpty: true) == [""])
    #expect("".parts(between: "=") == [])
  }

  /// A setting that is taken for another variable would be added beside the setting to be replaced.
  @Test func aVariableIsReplacedWhateverItsNewValueIs() {
    let environment = Processes.environment(setting: ["PATH=\u{301}"])
    let texts = environment.map { setting in
      String(decoding: setting.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
    let paths = texts.filter { $0.begins(with: "PATH=") }
    #expect(paths == ["PATH=\u{301}"])
  }

  @Test(arguments: ["", "a", "kanal", "ä/ö", String(repeating: "long ", count: 60)])
  func theBytesOfANameEndWithAZero(name: String) throws {
    #expect(name.withCName { String(cString: $0) } == name)
  }

  @Test func anErrorKeepsItsType() {
    #expect(throws: Errno.noSpace) {
      try "name".withCName { _ throws(Errno) in throw Errno.noSpace }
    }
  }
}
